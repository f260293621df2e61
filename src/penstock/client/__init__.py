"""The client: what speaks to a control plane over HTTP, and knows nothing of the server's rooms."""

from __future__ import annotations

from penstock.client import errors
from penstock.client._async.client import AsyncClient
from penstock.client._sync.client import Client
from penstock.client.models import Edge, Node, edge, node

__all__ = ["AsyncClient", "Client", "Edge", "Node", "connect", "edge", "errors", "node"]


def connect(url: str | None = None, api_key: str | None = None, *, username: str | None = None) -> Client:
    """A client of the control plane that is named, set in the environment, or running on this machine."""
    return Client(url, api_key, username=username)
