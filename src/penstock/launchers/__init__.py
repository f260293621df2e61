"""Launchers run graph servers: as processes of this machine or in a cluster."""
