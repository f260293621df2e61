"""Reading a table exactly: its manifests, data files and deletes."""
