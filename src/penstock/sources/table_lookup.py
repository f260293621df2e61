"""Look up tables of a source by name: `orders`, `sales.orders` or `lake.sales.orders`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kit.errors import Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.sources.contract import Column, Source, Table

_SHOWN = 10


async def tables(source: Source, prefix: str = "") -> list[Table]:
    """Tables whose name, qualified or not, starts with the prefix; sorted by name."""
    matches = [
        t
        for t in await source.catalog.tables()
        if any(n.startswith(prefix.lower()) for n in _names(t))
    ]
    return sorted(matches, key=lambda t: (t.catalog, t.schema, t.name))


async def columns(source: Source, name: str) -> tuple[Table, Sequence[Column]]:
    candidates = [t for t in await source.catalog.tables() if name.lower() in _names(t)]
    exactly = [
        t
        for t in candidates
        if name in (t.name, f"{t.schema}.{t.name}", f"{t.catalog}.{t.schema}.{t.name}")
    ]
    match exactly or candidates:
        case []:
            raise NotFound(f"There is no table {name[:200]!r} in this source.")
        case [table]:
            return table, await source.catalog.columns(table)
        case several:
            raise Conflict(
                f"There are {len(several)} tables {name[:200]!r}.",
                hint="Qualify it with its schema, or catalog and schema.",
                tables=[f"{t.catalog}.{t.schema}.{t.name}" for t in several[:_SHOWN]],
            )


def _names(table: Table) -> tuple[str, str, str]:
    name = table.name.lower()
    within = f"{table.schema.lower()}.{name}"
    return name, within, f"{table.catalog.lower()}.{within}"
