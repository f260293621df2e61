"""Other job systems on the same PostgreSQL, each used the way its own documentation says is fast.

A module has `setup` (the schema, once), the scenarios it can run (`bulk`, `singles`, `drain`), and
two queries: how many jobs there are (`JOBS`) and how many are not over (`LEFT`).
"""
