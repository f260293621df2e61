"""Filters on the columns of a side, and typed parameters whose values a run provides.

Parts of a recipe, as Pydantic models. No I/O; `staging.query` makes SQL of them.
"""

from __future__ import annotations

import math
import re
from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

MAX_IN = 1000

FilterOp = Literal["eq", "neq", "gt", "gte", "lt", "lte", "between", "in", "like", "is_null"]
ColumnName = Annotated[str, Field(min_length=1, max_length=255)]
ParameterName = Annotated[str, Field(pattern=r"^[A-Za-z_]\w{0,62}$")]
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TOO_LARGE = 10**38
_NUMBER = re.compile(r"-?\d{1,38}(\.\d{1,38})?")


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Filter(Part):
    """`value` may be `{"parameter": "name"}`; the run provides the value."""

    column: ColumnName
    op: FilterOp
    value: JsonValue = None

    @model_validator(mode="after")
    def _fits(self) -> Filter:
        match self.op:
            case "between" if not (isinstance(self.value, list) and len(self.value) == 2):
                raise ValueError("between takes a list of two values")
            case "in" if not (isinstance(self.value, list) and 1 <= len(self.value) <= MAX_IN):
                raise ValueError(f"in takes a list of 1 to {MAX_IN} values")
            case "is_null" if not (self.value is None or isinstance(self.value, bool)):
                raise ValueError("is_null takes true (the default) or false")
            case "like" if not isinstance(self.value, str | dict):
                raise ValueError("like takes a text with % and _")
            case "between" | "in" | "is_null" | "like":
                pass
            case _ if self.value is None or isinstance(self.value, list):
                raise ValueError(f"{self.op} takes one value; for missing ones there is is_null")
        for item in self.value if isinstance(self.value, list) else [self.value]:
            if isinstance(item, dict) and not (
                item.keys() == {"parameter"} and isinstance(item["parameter"], str)
            ):
                raise ValueError('an object as a value is {"parameter": "its name"}')
            if isinstance(item, list) or (item is None and self.op != "is_null"):
                raise ValueError(f"{self.op} takes texts, numbers, dates and booleans")
        return self


class Parameter(Part):
    type: Literal["text", "number", "date", "boolean"]
    default: JsonValue = None

    @model_validator(mode="after")
    def _fits(self) -> Parameter:
        if self.default is not None and not self.takes(self.default):
            raise ValueError(f"the default is no {self.type}")
        return self

    def takes(self, value: object) -> bool:
        match self.type, value:
            case "boolean", bool():
                return True
            case _, bool():
                return False
            case "number", int() | float():
                return is_finite(value)
            case "number", str():
                return is_number(value)
            case "date", str():
                return is_date(value)
            case "text", str():
                return True
        return False


def is_date(text: str) -> bool:
    """Whether a text is a calendar date such as 2024-01-31."""
    try:
        return _DATE.fullmatch(text) is not None and date.fromisoformat(text) is not None
    except ValueError:
        return False


def is_finite(value: float) -> bool:
    """Whether a number can be written as a SQL literal."""
    return abs(value) < _TOO_LARGE if isinstance(value, int) else math.isfinite(value)


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None
