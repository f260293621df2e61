"""Identifiers that people read and machines compare."""

from __future__ import annotations

import os
import re
import secrets
import socket
from uuid import uuid4

from penstock.kit.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,199}")


def request_id() -> str:
    return uuid4().hex


def worker_name() -> str:
    """Unique per process start, readable in a list: host, pid, and a few random letters."""
    return f"{socket.gethostname()[:60]}-{os.getpid()}-{secrets.token_hex(3)}"


def token() -> str:
    return secrets.token_urlsafe(32)


def check_name(text: str, what: str) -> str:
    """A name that may reach a URL, a log line and a metric label."""
    if not _NAME.fullmatch(text):
        raise InvalidInput(
            f"{what} {text[:80]!r} is not a valid name.",
            hint="Use 1-200 letters, digits and _ . : @ / -, beginning with a letter or digit.",
        )
    return text
