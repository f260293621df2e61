"""The name of a statement in logs: its digest, for the text may hold values that are nobody's
business."""

from __future__ import annotations

import hashlib


def statement_digest(text: str) -> str:
    """SHA-256 of its UTF-8; half of a surrogate pair, which has none, as its three bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
