"""Graphs drawn for people: a page that needs no server, a widget for notebooks. Knows none of the
other rooms."""
