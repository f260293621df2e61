"""Documents that people send and that are kept as they are: what PostgreSQL cannot keep is refused by its field."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from pydantic import AfterValidator

_NUL = b"\\u0000"


def _storable(value: dict[str, Any]) -> dict[str, Any]:
    try:
        text = orjson.dumps(value)
    except TypeError:
        raise ValueError("it holds a number of more than 64 bits; write it as a text") from None
    if _NUL in text:
        raise ValueError("it holds a NUL character, which cannot be stored")
    return value


Document = Annotated[dict[str, Any], AfterValidator(_storable)]
Words = Annotated[str, AfterValidator(lambda text: _storable({"": text})[""])]
