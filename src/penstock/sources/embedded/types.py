"""The output types of DuckDB columns: exact and storable in Parquet; other types become text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duckdb.sqltypes import DuckDBPyType

from penstock.sources.batch_checks import Range

if TYPE_CHECKING:
    from collections.abc import Sequence

# Wider than any decimal; the cast fails on overflow, whereas Arrow's export would wrap.
_WIDE = {"hugeint", "uhugeint"}
_TEXT = {"bignum", "bit", "enum", "interval", "null", "time with time zone", "union", "variant"}
_NESTED = {"array", "list", "map", "struct"}

_FOREVER = 2**63 - 1
_FOREVER_DAYS = 2**31 - 1
REAL = Range(
    date32=(-_FOREVER_DAYS + 1, _FOREVER_DAYS - 1),
    timestamp=(-_FOREVER + 1, _FOREVER - 1),
)


def projection(names: Sequence[str], types: Sequence[DuckDBPyType]) -> str:
    return ", ".join(_column(quoted(name), kind) for name, kind in zip(names, types, strict=True))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _column(name: str, kind: DuckDBPyType) -> str:
    if kind.id in _WIDE:
        return f"CAST({name} AS DECIMAL(38, 0)) AS {name}"
    return f"CAST({name} AS VARCHAR) AS {name}" if _unfit(kind) else name


def _unfit(kind: DuckDBPyType) -> bool:
    if kind.id in _NESTED:
        inner = [child for _, child in kind.children if isinstance(child, DuckDBPyType)]
        return any(_unfit(child) or child.id in _WIDE for child in inner)
    return kind.id in _TEXT
