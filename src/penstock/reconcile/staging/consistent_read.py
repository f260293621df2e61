"""A consistent read for chunks whose connections cannot share a snapshot.

An Iceberg table is read at its current snapshot, which every chunk names. For anything else a
fingerprint is computed before the chunks and again after the last of them: if it is the same, they
saw the same rows; if not, the staged files are discarded. The source computes it, so it costs a
scan there and no transfer.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.kit.errors import PenstockError
from penstock.sources.contract import Limits
from penstock.sources.errors import SourceUnavailable
from penstock.sources.single_table import bare, one_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.sources.contract import Row, Source


class SourceChanged(SourceUnavailable):
    """A retry may succeed when there are no concurrent writes."""

    code = "SOURCE_CHANGED"


class Unchanged:
    """The hold of a plan whose chunks share no snapshot: verifies at the end that nothing
    changed."""

    def __init__(self, source: Source, sql: str, fingerprint: Row) -> None:
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
                "The source changed while it was staged: "
                f"it had {self._fingerprint[0]} rows and has {now[0][0]},"
                " or others.",
                hint=(
                    "Run it while nothing writes to the source, or leave partition_key out: "
                    "a single reader sees one snapshot."
                ),
            )


async def unchanged(source: Source, sql: str, names: Sequence[str]) -> Unchanged | None:
    """None if the source cannot compute a fingerprint."""
    fingerprint_sql = _fingerprint(sql, names, source.dialect)
    try:
        [fingerprint] = await rows(source, fingerprint_sql)
    except SourceUnavailable:
        raise
    except PenstockError:
        return None
    return Unchanged(source, fingerprint_sql, fingerprint)


async def pinned(source: Source, sql: str) -> str | None:
    """The query at the current snapshot of its Iceberg table; None for anything else."""
    query = one_table(sql, source.dialect)
    if source.dialect != "trino" or query is None:
        return None
    try:
        snapshots = await rows(
            source, f"SELECT snapshot_id FROM {_refs(query.table)} WHERE name = 'main'"
        )
    except SourceUnavailable:
        raise
    except PenstockError:
        return None
    return (
        query.reading(f"{query.table} FOR VERSION AS OF {int(snapshots[0][0])}").text
        if snapshots
        else None
    )


async def rows(source: Source, sql: str) -> list[Row]:
    plan = await source.plan(sql, Limits(max_chunks=1))
    values: list[Row] = []
    async with aclosing(source.stream(plan.chunks[0])) as batches:
        async for batch in batches:
            values += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return values


def _refs(table: str) -> str:
    """The `$refs` table of an Iceberg table; `table` is SQL."""
    named = exp.to_table(table, dialect="trino")
    named.set("this", exp.to_identifier(f"{named.name}$refs", quoted=True))
    return named.sql(dialect="trino")


def _fingerprint(sql: str, names: Sequence[str], dialect: str) -> str:
    columns = [exp.column(name, "q", quoted=True).sql(dialect=dialect) for name in names]
    inner = f"(\n{bare(sql, dialect)}\n) AS q"
    if dialect == "trino":
        return (
            f"SELECT COUNT(*) AS n, to_hex(checksum(ROW({', '.join(columns)}))) AS digest"
            f" FROM {inner}"
        )
    # Of each value apart, for a row may be longer than the server lets a text be.
    values = ", ".join(f"IFNULL(CRC32({column}), '-')" for column in columns)
    return (
        f"SELECT COUNT(*) AS n, CAST(SUM(CRC32(CONCAT_WS(',', {values}))) AS CHAR) AS digest"
        f" FROM {inner}"
    )
