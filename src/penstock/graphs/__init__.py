"""Mappings, snapshots and instances: what graphs are made of, and the servers that answer them."""
