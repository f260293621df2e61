"""Writing a new snapshot and committing it, if nothing forbids it."""
