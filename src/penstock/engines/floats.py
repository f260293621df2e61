"""Floats as text. Every engine calls these functions, because each formats floats differently."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa

_EXACT = Context(prec=400)


def shortest(numbers: pa.Array) -> pa.Array:
    """Doubles as their shortest round-trip digits, without an exponent; negative zero is zero."""
    return pa.array([_text(number) for number in numbers.to_pylist()], pa.string())


def rounded(numbers: pa.Array, decimals: pa.Array) -> pa.Array:
    """Doubles with this many decimals (the same for all rows), rounded half away from zero from
    their shortest digits."""
    if not len(numbers):
        return pa.array([], pa.string())
    last = Decimal(1).scaleb(-decimals[0].as_py())
    return pa.array([_rounded(number, last) for number in numbers.to_pylist()], pa.string())


def _rounded(number: float | None, last: Decimal) -> str | None:
    if number is None or not math.isfinite(number):
        return None if number is None else str(number)
    return f"{Decimal(repr(number or 0.0)).quantize(last, ROUND_HALF_UP, _EXACT):f}"


def _text(number: float | None) -> str | None:
    if number is None or not math.isfinite(number):
        return None if number is None else str(number)
    return f"{Decimal(repr(number or 0.0)):f}"
