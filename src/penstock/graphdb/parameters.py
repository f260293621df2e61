"""Parameters that do the embedded engines no harm.

All items of a list have one type for them, which they take from one item: of maps with other keys they exchange the
keys, of a mixed list they make text, and a null among maps crashes one of them. So maps in one list get the same keys,
and what cannot have one type is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.graphdb.errors import CypherError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.graphdb.contract import JsonValue

_WORDS = {dict: "a map", list: "a list", str: "text", bool: "a truth value", type(None): "null"}
_NUMBERS = frozenset({int, float})


def harmless(parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: _alike(name, [value])[0] for name, value in parameters.items()}


def _alike(name: str, values: list[JsonValue]) -> list[JsonValue]:
    """Values that share a type, made so that they do."""
    kinds = {type(value) for value in values}
    if len(kinds) > 1:
        _check(name, kinds)
    if dict in kinds:
        return _maps(name, [value for value in values if isinstance(value, dict)])
    if list in kinds:
        return _lists(name, [value for value in values if isinstance(value, list)])
    return values


def _check(name: str, kinds: set[type]) -> None:
    if dict not in kinds and list not in kinds:
        kinds = kinds - {type(None)}
    if len(kinds) > 1 and not kinds <= _NUMBERS:
        words = sorted({_WORDS.get(kind, "a number") for kind in kinds})
        raise CypherError(
            f"${name} has {' and '.join(words)} in one list, or under one key of its maps.",
            hint="The items of a list have one type; null is possible only among plain values.",
        )


def _maps(name: str, maps: list[dict[str, JsonValue]]) -> list[JsonValue]:
    keys = dict.fromkeys(key for each in maps for key in each)
    columns = {key: _alike(name, [each.get(key) for each in maps]) for key in keys}
    return [{key: column[i] for key, column in columns.items()} for i in range(len(maps))]


def _lists(name: str, lists: list[list[JsonValue]]) -> list[JsonValue]:
    items = iter(_alike(name, [item for each in lists for item in each]))
    return [[next(items) for _ in each] for each in lists]
