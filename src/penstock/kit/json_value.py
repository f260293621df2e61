"""What a JSON parser returns, for the type checker.

Pydantic sees `Any`: what it validates came out of a parser already, so walking it once more would
cost time and find nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    JsonValue: TypeAlias = (
        "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
    )
    JsonObject: TypeAlias = dict[str, JsonValue]
else:
    JsonValue: TypeAlias = Any
    JsonObject: TypeAlias = dict[str, Any]
