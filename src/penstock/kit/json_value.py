"""Types of JSON documents: what is read from a database, a request or a file, and passed on.

Both are read-only, so a `list[str]` or a `dict[str, int]` is one. Whoever reads fields of a
document parses it into a record first. Models of pydantic use pydantic's `JsonValue` instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
JsonObject: TypeAlias = Mapping[str, JsonValue]
