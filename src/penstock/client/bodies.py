"""Builds request bodies without unset fields."""

from __future__ import annotations

from typing import Any


def given(**values: object) -> dict[str, Any]:
    """Without what was left out, so that the server's own defaults hold."""
    return {name: value for name, value in values.items() if value is not None}
