"""Amounts as Kubernetes writes them: 12Ki, 1.5G, 900m."""

from __future__ import annotations

import re

_QUANTITY = re.compile(r"([0-9.]+)([numkKMGTPE]?i?)")
_DECIMAL = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
_LARGE = {"T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}
_FACTORS = _DECIMAL | _LARGE | _BINARY


def bytes_of(text: str) -> int:
    match = _QUANTITY.fullmatch(text)
    return 0 if match is None else int(float(match[1]) * _FACTORS.get(match[2], 1))
