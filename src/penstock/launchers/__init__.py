"""Launchers: who runs the graph servers, one a folder of this machine or of a cluster."""
