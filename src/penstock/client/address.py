"""Finds the control plane: arguments, then the environment, then this machine's `penstock up`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from penstock.client.errors import Unreachable


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    url: str
    token: str | None = None
    username: str | None = None

    @property
    def is_local(self) -> bool:
        return urlsplit(self.url).hostname in ("127.0.0.1", "::1", "localhost")


def find(url: str | None, token: str | None, username: str | None) -> Address:
    url = url or os.environ.get("PENSTOCK_URL")
    token = token or os.environ.get("PENSTOCK_API_KEY")
    username = username or os.environ.get("PENSTOCK_USERNAME")
    local = None if url and (token or username) else _local()
    if url and (local is None or local.url != url.rstrip("/")):
        return Address(url=url.rstrip("/"), token=token, username=username)
    if local is None:
        raise Unreachable(
            "No control plane is named, and none runs on this machine.",
            code="UNREACHABLE",
            status=503,
            hint="Start one with `penstock up`, or set PENSTOCK_URL and PENSTOCK_API_KEY.",
        )
    return Address(
        url=local.url, token=token or (None if username else local.token), username=username
    )


def _local() -> Address | None:
    """The control plane of this home, with the operator token; None unless it runs.

    A port of one that ended may be somebody else's by now, who must not get the token.
    """
    home = Path(os.environ.get("PENSTOCK_HOME") or Path.home() / ".penstock")
    try:
        running = json.loads((home / "run" / "up.json").read_text())
        url, pid = str(running["url"]), int(running["pid"])
        token = (home / "secrets" / "operator_token").read_text().strip()
        os.kill(pid, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Address(url=url.rstrip("/"), token=token)
