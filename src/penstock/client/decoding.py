"""JSON objects become dataclasses: by their fields' types, keeping what we do not know in `raw`.

A server that is newer than this client may say more than we know; nothing of it is lost, and
nothing of it breaks us.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from datetime import datetime
from functools import cache
from typing import TypeVar

from penstock.client.json_value import JsonValue

T = TypeVar("T")


def decode(kind: type[T], value: object) -> T:
    """One object, as `kind`."""
    if not isinstance(value, dict):
        raise TypeError(f"{kind.__name__} is made from an object, not from {type(value).__name__}.")
    hints = _hints(typing.cast("type", kind))
    fields = {
        name: _value(hints[name], value[name]) for name in hints if name in value and name != "raw"
    }
    if "raw" in hints:
        fields["raw"] = value
    return kind(**fields)


@cache
def _hints(kind: type) -> dict[str, object]:
    if not dataclasses.is_dataclass(kind):
        raise TypeError(f"{kind.__name__} is no dataclass.")
    names = {field.name for field in dataclasses.fields(kind) if field.init}
    # JsonValue names itself, and not every module that uses it has that name.
    hints = typing.get_type_hints(kind, localns={"JsonValue": JsonValue})
    return {name: hint for name, hint in hints.items() if name in names}


def _value(hint: object, value: object) -> object:
    if value is None:
        return None
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        [hint] = [option for option in typing.get_args(hint) if option is not types.NoneType][:1]
    if isinstance(value, list) and typing.get_origin(hint) in (list, tuple):
        inner = typing.get_args(hint)[0]
        return tuple(_value(inner, item) for item in value)
    if hint is datetime and isinstance(value, str):
        return datetime.fromisoformat(value)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return decode(hint, value)
    return value
