"""Queries: their routes (`query.py`, `subgraph.py`, and `direct.py` past the framework), and how
rows and small graphs are written for clients (`results.py`, `graph_files.py`), which the engine's
process does: these two import no web framework.
"""
