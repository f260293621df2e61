"""A typed dict as JSON Schema: what is required, of which type; more fields may come."""

from __future__ import annotations

import types
import typing
from typing import Any

import jsonschema

from penstock.client.json_value import JsonValue

_ANY_JSON = (JsonValue, "JsonValue", typing.ForwardRef("JsonValue"))
"""It names itself, and inside it the name stays as it is."""
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}


def schema(hint: Any) -> dict[str, Any]:
    if hint in (Any, object, *_ANY_JSON):
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if typing.is_typeddict(hint):
        return _object(hint)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema(option) for option in inner]}
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin is list:
        return {"type": "array", "items": schema(inner[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema(inner[1])}
    raise AssertionError(f"no schema for {hint}")


def _object(kind: Any) -> dict[str, Any]:
    properties, required = {}, []
    for name, hint in typing.get_type_hints(
        kind, localns={"JsonValue": JsonValue}, include_extras=True
    ).items():
        optional = typing.get_origin(hint) is typing.NotRequired
        properties[name] = schema(typing.get_args(hint)[0] if optional else hint)
        if not optional:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def check(document: object, hint: Any) -> None:
    """Raises with the place of the first thing that is not as it was promised."""
    jsonschema.validate(document, schema(hint), cls=jsonschema.Draft202012Validator)
