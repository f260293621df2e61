"""The graph engine in its own process, so that a hostile query cannot kill the HTTP server.

The graph server (`engine.py`, `child.py`, `watchdog.py`) starts the engine process (`process.py`,
`engine_work.py`), gives it requests over unix sockets (`wire.py`), ends it when a query takes too
long or too much memory, and starts it again from the files that the load left. Queries that were
running are run again.
"""
