from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kit.outbound import FOR_OPERATOR, Outbound
from penstock.sources import threaded_stream
from penstock.sources.config import read
from penstock.sources.contract import Chunk, Limits, Plan
from penstock.sources.postgres.catalog import PostgresCatalog
from penstock.sources.postgres.config import Config
from penstock.sources.postgres.cuts import cut
from penstock.sources.postgres.hold import SnapshotHold
from penstock.sources.postgres.session import Session
from penstock.sources.postgres.types import schema_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
    from typing import TypeVar

    import pyarrow as pa

    from penstock.kit.sqlfile import Statement
    from penstock.sources.contract import Row

    T = TypeVar("T")

_PLAN_SECONDS = 120.0


def connect(
    config: Mapping[str, object], secrets: Mapping[str, str], outbound: Outbound = FOR_OPERATOR
) -> PostgresSource:
    return PostgresSource(read(Config, config, secrets, source="postgres"), outbound)


class PostgresSource:
    """Opens a connection per call; only a plan's snapshot stays open, until its hold closes."""

    dialect = "postgres"

    def __init__(self, config: Config, outbound: Outbound = FOR_OPERATOR) -> None:
        self._config = config
        self._outbound = outbound

    async def __aenter__(self) -> PostgresSource:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def test(self) -> str:
        [(version,)] = await self._within(lambda session: session.rows("SHOW server_version"))
        return f"PostgreSQL {version}"

    async def schema(self, sql: str) -> pa.Schema:
        return await self._within(lambda session: schema_of(session.columns(sql)))

    async def plan(self, sql: str, limits: Limits) -> Plan:
        session = Session(self._config, self._outbound, trace="plan")
        return await threaded_stream.call(
            lambda: _plan(session, sql, limits),
            session.cancel,
            name="postgres",
            within=_PLAN_SECONDS,
        )

    def stream(self, chunk: Chunk, *, trace: str = "") -> AsyncGenerator[pa.RecordBatch]:
        session = Session(self._config, self._outbound, trace=trace, snapshot=chunk.snapshot)

        def read_all() -> Iterator[pa.RecordBatch]:
            with session.opened():
                yield from session.batches(chunk.sql)

        return threaded_stream.stream(
            read_all, session.cancel, name="postgres", silence=self._config.silence_seconds
        )

    @property
    def catalog(self) -> PostgresCatalog:
        return PostgresCatalog(self)

    async def ask(self, statement: Statement, **values: object) -> list[Row]:
        return await self._within(lambda session: session.ask(statement, **values))

    async def _within(self, work: Callable[[Session], T]) -> T:
        session = Session(self._config, self._outbound)

        def opened() -> T:
            with session.opened():
                return work(session)

        return await threaded_stream.call(
            opened, session.cancel, name="postgres", within=_PLAN_SECONDS
        )


def _plan(session: Session, sql: str, limits: Limits) -> Plan:
    """Export the snapshot before reading the sizes: pages added in between are covered by the
    open-ended last part."""
    session.open()
    try:
        schema = schema_of(session.columns(sql))
        [(snapshot,)] = session.rows("SELECT pg_export_snapshot()")
        parts = cut(session, sql, schema.names, limits)
    except BaseException:
        session.close()
        raise
    alone = len(parts) == 1
    chunks = [
        Chunk(
            number=number,
            sql=part.sql,
            snapshot=None if alone else snapshot,
            estimated_rows=part.rows,
            extra={"way": part.way},
        )
        for number, part in enumerate(parts)
    ]
    if alone:
        session.close()
    return Plan(chunks=chunks, schema=schema, hold=None if alone else SnapshotHold(session))
