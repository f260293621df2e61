"""Types of JSON: what the API takes and gives where it promises no more than that."""

from __future__ import annotations

from typing import TypeAlias

JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None
JsonObject: TypeAlias = dict[str, JsonValue]


def json_object(value: object) -> JsonObject:
    """A value that should be an object; empty where it is none."""
    return value if isinstance(value, dict) else {}
