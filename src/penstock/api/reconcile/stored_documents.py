"""Validation of user documents that are stored as they are: values that PostgreSQL cannot store are
refused by field."""

from __future__ import annotations

from typing import Annotated

import orjson
from pydantic import AfterValidator, Field

from penstock.kit.json_value import JsonObject, JsonValue

_NUL = b"\\u0000"


def _storable(value: JsonObject) -> JsonObject:
    try:
        text = orjson.dumps(value)
    except TypeError:
        raise ValueError("it contains a number of more than 64 bits; send it as a text") from None
    if _NUL in text:
        raise ValueError("it contains a NUL character, which cannot be stored")
    return value


MAX_FIELDS = 200
FieldName = Annotated[str, Field(max_length=200)]
Document = Annotated[
    dict[FieldName, JsonValue], Field(max_length=MAX_FIELDS), AfterValidator(_storable)
]
STORABLE_TEXT = AfterValidator(lambda text: _storable({"": text})[""])
