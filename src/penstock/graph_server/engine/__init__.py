"""The engine in a process of its own: what a hostile query can kill is not what answers HTTP.

The graph server (`engine.py`, `child.py`, `watchdog.py`) starts the engine process (`process.py`,
`work.py`), gives it requests over unix sockets (`wire.py`), ends it when a query takes too long or
too much memory, and starts it again from the files that the load left. Queries that were running
are run again.
"""
