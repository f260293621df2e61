"""How large files should be, and in which order their rows."""
