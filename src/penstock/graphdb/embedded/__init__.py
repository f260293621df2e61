"""The embedded engines, Ladybug and Ryugraph: two forks of one library, so one backend
(`engine.py`) with what differs in `ladybug.py` and `ryugraph.py`.
"""
