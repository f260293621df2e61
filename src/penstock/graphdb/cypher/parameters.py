"""Converts query parameters to a form that the embedded engines handle correctly.

The engines infer the type of a list from one item: they mix up the keys of maps with different
keys, convert a mixed list to text, and one crashes on a null among maps. So maps in one list get
the same keys, and a list without one type is refused.

Ryugraph ignores a condition that depends on parameters alone (`WHERE $p` is always true), so there
parameters become literals where that is possible. Ladybug gives an integer the smallest type that
fits it, so `$p + $p` of 100 overflows; integers become literals for both engines, and so do empty
lists, which have no type as parameters.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from penstock.graphdb.cypher.text import COMMENT, QUOTED
from penstock.graphdb.errors import CypherError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.kit.json_value import JsonValue

_WORDS = {dict: "a map", list: "a list", str: "text", bool: "a truth value", type(None): "null"}
_NUMBERS = frozenset({int, float})
_TOKEN = re.compile(
    rf"{QUOTED}|{COMMENT}"
    r"""|\$(?P<name>[A-Za-z_][A-Za-z0-9_]*|[0-9]+)""",
    re.DOTALL,
)
"""A parameter, or quoted text and comments, whose dollar signs are not parameters."""
_MOST_ITEMS = 1000
"""Maximum length of a list literal: the engine parses long statements slowly."""
_QUOTED = re.compile(r"['\\]")


def harmless(parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: _alike(name, [value])[0] for name, value in parameters.items()}


def inlined(
    text: str, parameters: Mapping[str, JsonValue], *, every: bool
) -> tuple[str, dict[str, JsonValue]]:
    """The statement with literals in place of parameters, and the other parameters. With `every`,
    each parameter that has a literal is inlined; otherwise integers, lists of them and untyped
    lists."""
    literals = {
        name: _literal(value)
        for name, value in parameters.items()
        if every or _is_untyped(value) or _is_integral(value)
    }
    left = {name: value for name, value in parameters.items() if literals.get(name) is None}

    def written(match: re.Match[str]) -> str:
        return literals.get(match["name"]) or match[0]

    return (_TOKEN.sub(written, text) if len(left) < len(parameters) else text), left


def _is_untyped(value: JsonValue) -> bool:
    """An empty list, or one of nulls: as a parameter it has a type that no function accepts."""
    return isinstance(value, list) and all(item is None or _is_untyped(item) for item in value)


def _is_integral(value: JsonValue) -> bool:
    """An integer, or a list with one."""
    if isinstance(value, list):
        return any(map(_is_integral, value))
    return isinstance(value, int) and not isinstance(value, bool)


def _literal(value: JsonValue) -> str | None:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return _number(str(value)) if -(2**63) <= value < 2**63 else None
        case float():
            return _float(value)
        case str():
            return None if "\x00" in value else "'" + _QUOTED.sub(r"\\\g<0>", value) + "'"
        case list() if len(value) <= _MOST_ITEMS:
            items = [_literal(item) for item in value]
            return None if None in items else f"[{', '.join(item for item in items if item)}]"
    return None


def _float(value: float) -> str:
    if not math.isfinite(value):
        return f"CAST('{value}' AS DOUBLE)"
    # The engines parse 1e22, but not 1e+22.
    return _number(repr(value).replace("+", ""))


def _number(digits: str) -> str:
    """Without brackets where possible: LIMIT accepts nothing else."""
    return f"({digits})" if digits.startswith("-") else digits


def _alike(name: str, values: list[JsonValue]) -> list[JsonValue]:
    """The values converted to a common type."""
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
            hint="The items of a list must have one type; null is allowed among scalars only.",
        )


def _maps(name: str, maps: list[dict[str, JsonValue]]) -> list[JsonValue]:
    keys = dict.fromkeys(key for mapping in maps for key in mapping)
    columns = {key: _alike(name, [mapping.get(key) for mapping in maps]) for key in keys}
    return [{key: column[i] for key, column in columns.items()} for i in range(len(maps))]


def _lists(name: str, lists: list[list[JsonValue]]) -> list[JsonValue]:
    items = iter(_alike(name, [item for sequence in lists for item in sequence]))
    return [[next(items) for _ in sequence] for sequence in lists]
