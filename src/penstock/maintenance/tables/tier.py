"""How far one looks at a table."""

from __future__ import annotations

import enum


class Tier(enum.StrEnum):
    METADATA = "metadata"
    MANIFESTS = "manifests"
    STORAGE = "storage"
