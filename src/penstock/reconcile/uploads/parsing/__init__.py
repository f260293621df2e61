"""Uploaded files are parsed in processes of their own, within limits that the operator sets."""
