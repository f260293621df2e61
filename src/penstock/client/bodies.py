"""Builds request bodies without unset fields."""

from __future__ import annotations


def given(**values: object) -> dict[str, object]:
    """Without what was left out, so that the server's own defaults hold."""
    return {name: value for name, value in values.items() if value is not None}
