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
from typing import Any, TypeVar

T = TypeVar("T")


def decode(kind: type[T], value: object) -> T:
    """One object, as `kind`."""
    if not isinstance(value, dict):
        raise TypeError(f"{kind.__name__} is made from an object, not from {type(value).__name__}.")
    hints = _hints(typing.cast("Any", kind))
    fields = {
        name: _value(hints[name], value[name]) for name in hints if name in value and name != "raw"
    }
    if "raw" in hints:
        fields["raw"] = value
    return kind(**fields)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(kind) if field.init}
    return {name: hint for name, hint in typing.get_type_hints(kind).items() if name in names}


def _value(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        [hint] = [option for option in typing.get_args(hint) if option is not types.NoneType][:1]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (list, tuple):
        return tuple(_value(arguments[0], item) for item in value)
    if hint is datetime:
        return moment(value)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return decode(hint, value)
    return value


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
