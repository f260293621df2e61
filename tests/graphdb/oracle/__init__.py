"""Random graphs and random read-only Cypher on every engine, against a reference that is slow and
obvious.

`graphs.py` makes a graph, `generator.py` a query as a tree (`syntax.py`), which is written as text
for the engines and evaluated as a tree by the reference (`reference.py`), from openCypher's rules
alone. Where an engine departs from those, `differences.py` says how, with a probe that shows it;
the reference then departs in the same way, so that an engine is held to its documented differences
and to nothing else. `make fuzz NAME=graphs` runs more cases.
"""
