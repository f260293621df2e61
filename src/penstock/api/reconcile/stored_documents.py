"""Validation of user documents that are stored as they are: values that PostgreSQL cannot store are
refused by field."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, Field

_NUL = b"\\u0000"


def _storable(value: dict[str, Any]) -> dict[str, Any]:
    try:
        text = orjson.dumps(value)
    except TypeError:
        raise ValueError("it contains a number of more than 64 bits; send it as a text") from None
    if _NUL in text:
        raise ValueError("it contains a NUL character, which cannot be stored")
    return value


MAX_FIELDS = 200
FieldName = Annotated[str, Field(max_length=200)]
Document = Annotated[dict[FieldName, Any], Field(max_length=MAX_FIELDS), AfterValidator(_storable)]
STORABLE_TEXT = AfterValidator(lambda text: _storable({"": text})[""])
