"""`penstock.connect()`."""

from __future__ import annotations

from penstock.client._sync.client import Client


def connect(
    url: str | None = None,
    api_key: str | None = None,
    *,
    username: str | None = None,
    timeout: float = 30.0,
) -> Client:
    """A client of the control plane that is named, set in the environment, or running on this
    machine."""
    return Client(url, api_key, username=username, timeout=timeout)
