"""Graphs drawn for people: a page that needs no server, and a widget for notebooks. Imports nothing of the other rooms."""
