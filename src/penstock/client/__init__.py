"""The Python client of a control plane, over HTTP; it imports nothing of the server.

Its names are loaded when they are first used, so that a command which needs only the errors does
not wait for HTTP.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client import errors
    from penstock.client._async.client import AsyncClient
    from penstock.client._sync.client import Client
    from penstock.client.connecting import connect
    from penstock.client.definitions import Edge, Node, edge, node

__all__ = ["AsyncClient", "Client", "Edge", "Node", "connect", "edge", "errors", "node"]
_HOMES = {
    "AsyncClient": "_async.client",
    "Client": "_sync.client",
    "Edge": "definitions",
    "Node": "definitions",
    "connect": "connecting",
    "edge": "definitions",
    "node": "definitions",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"penstock.client.{_HOMES[name]}"), name)
    if name == "errors":
        return import_module("penstock.client.errors")
    raise AttributeError(f"module 'penstock.client' has no attribute {name!r}")
