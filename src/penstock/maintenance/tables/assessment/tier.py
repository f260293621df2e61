"""How much of a table is read to assess it: its metadata, its manifests, or its storage too."""

from __future__ import annotations

import enum


class Tier(enum.StrEnum):
    METADATA = "metadata"
    MANIFESTS = "manifests"
    STORAGE = "storage"
