"""One moment for chunks that are read by several connections to a source that cannot share one
between them.

A table of Iceberg is read at its snapshot, which every chunk names. Of anything else a fingerprint
is taken before the chunks and again after the last of them: when it is the same, they saw the same
rows; when it is not, what was staged is thrown away. The source computes it, so that it costs a
scan there and nothing on the way.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from penstock.kit.errors import PenstockError
from penstock.sources.contract import Limits
from penstock.sources.errors import SourceUnavailable
from penstock.sources.single_table import bare, one_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.sources.contract import Source


class SourceChanged(SourceUnavailable):
    """Trying again may help, when nobody writes."""

    code = "SOURCE_CHANGED"


class Unchanged:
    """The hold of a plan whose chunks have no moment in common: asked at their end, whether that
    mattered."""

    def __init__(self, source: Source, sql: str, fingerprint: tuple[Any, ...]) -> None:
        self._source = source
        self._sql = sql
        self._fingerprint = fingerprint

    async def alive(self) -> bool:
        return True

    async def close(self) -> None:
        return None

    async def check(self) -> None:
        now = await rows(self._source, self._sql)
        if now != [self._fingerprint]:
            raise SourceChanged(
                f"The source changed while it was staged: it had {self._fingerprint[0]} rows and has {now[0][0]},"
                " or others.",
                hint="Run it when nobody writes, or leave partition_key out: one reader sees one moment.",
            )


async def unchanged(source: Source, sql: str, names: Sequence[str]) -> Unchanged | None:
    """None where the source has no way to tell."""
    asked = _fingerprint(sql, names, source.dialect)
    try:
        [found] = await rows(source, asked)
    except SourceUnavailable:
        raise
    except PenstockError:
        return None
    return Unchanged(source, asked, found)


async def pinned(source: Source, sql: str) -> str | None:
    """The query at the snapshot that its table of Iceberg has now; None for anything else."""
    query = one_table(sql, source.dialect)
    if source.dialect != "trino" or query is None:
        return None
    try:
        found = await rows(
            source, f"SELECT snapshot_id FROM {_refs(query.table)} WHERE name = 'main'"
        )
    except SourceUnavailable:
        raise
    except PenstockError:
        return None
    return (
        query.reading(f"{query.table} FOR VERSION AS OF {int(found[0][0])}").text if found else None
    )


async def rows(source: Source, sql: str) -> list[tuple[Any, ...]]:
    plan = await source.plan(sql, Limits(max_chunks=1))
    found: list[tuple[Any, ...]] = []
    async with aclosing(source.stream(plan.chunks[0])) as batches:
        async for batch in batches:
            found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return found


def _refs(table: str) -> str:
    """The table of a table's branches; `table` is SQL."""
    named = exp.to_table(table, dialect="trino")
    named.set("this", exp.to_identifier(f"{named.name}$refs", quoted=True))
    return named.sql(dialect="trino")


def _fingerprint(sql: str, names: Sequence[str], dialect: str) -> str:
    columns = [exp.column(name, "q", quoted=True).sql(dialect=dialect) for name in names]
    inner = f"(\n{bare(sql, dialect)}\n) AS q"
    if dialect == "trino":
        return f"SELECT COUNT(*) AS n, to_hex(checksum(ROW({', '.join(columns)}))) AS digest FROM {inner}"
    # Of each value apart, for a row may be longer than the server lets a text be.
    values = ", ".join(f"IFNULL(CRC32({column}), '-')" for column in columns)
    return f"SELECT COUNT(*) AS n, CAST(SUM(CRC32(CONCAT_WS(',', {values}))) AS CHAR) AS digest FROM {inner}"
