"""Long data work that must not be lost, doubled or left half done, behind one gate.

    import penstock

    ps = penstock.connect()
    with ps.mappings.get(1).start(ttl="2h") as g:
        g.query("MATCH (a)-[r]->(b) RETURN a, r, b LIMIT 50").show()

What is imported from here is loaded when it is first used; nothing of the server comes with it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client import AsyncClient, Client, Edge, Node, connect, edge, errors, node

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "Client",
    "Edge",
    "Node",
    "__version__",
    "connect",
    "edge",
    "errors",
    "node",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("penstock.client"), name)
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
