"""Filling the graph at the start: what is loaded (`plan.py`), its files (`files.py`), and the steps
in their order (`loading.py`).
"""
