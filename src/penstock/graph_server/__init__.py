"""The graph server: one process loads one snapshot into one graph database, and answers for it."""
