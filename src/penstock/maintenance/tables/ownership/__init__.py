"""Which files are a table's own: its storage, its references, and the tables beside it."""
