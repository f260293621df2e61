"""Where the control plane is: by arguments, then the environment, then this machine's own `penstock up`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from penstock.client.errors import Unreachable


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    url: str
    token: str | None = None
    username: str | None = None


def find(url: str | None, token: str | None, username: str | None) -> Address:
    url = url or os.environ.get("PENSTOCK_URL")
    token = token or os.environ.get("PENSTOCK_API_KEY")
    username = username or os.environ.get("PENSTOCK_USERNAME")
    if url:
        return Address(url=url.rstrip("/"), token=token, username=username)
    home = Path(os.environ.get("PENSTOCK_HOME") or Path.home() / ".penstock")
    try:
        running = json.loads((home / "run" / "up.json").read_text())
        token = token or (None if username else (home / "secrets" / "operator_token").read_text().strip())
    except (OSError, ValueError):
        raise Unreachable(
            "No control plane is named, and none runs on this machine.",
            code="UNREACHABLE",
            status=503,
            hint="Start one with `penstock up`, or set PENSTOCK_URL and PENSTOCK_API_KEY.",
        ) from None
    return Address(url=str(running["url"]).rstrip("/"), token=token, username=username)
