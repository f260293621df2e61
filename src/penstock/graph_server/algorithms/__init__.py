"""Runs of algorithms: routes, executions (`executions.py`; one of them is `execution.py`), the
graph's files for children, the children, and the lock of those that write. The algorithms
themselves are in `graphdb/algorithms`.
"""
