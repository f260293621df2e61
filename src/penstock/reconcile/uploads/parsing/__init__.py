"""Parses uploaded files in separate processes, within limits that the operator sets."""
