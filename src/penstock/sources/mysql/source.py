from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kit.outbound import FOR_OPERATOR, Outbound
from penstock.sources import threaded_stream
from penstock.sources.config import read
from penstock.sources.contract import Chunk, Limits, Plan
from penstock.sources.mysql.catalog import MySQLCatalog
from penstock.sources.mysql.config import Config
from penstock.sources.mysql.session import Session
from penstock.sources.mysql.types import schema_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
    from typing import TypeVar

    import pyarrow as pa

    from penstock.sources.contract import Row
    from penstock.sources.mysql.connection import Connection

    T = TypeVar("T")

_ANSWER_SECONDS = 120.0


def connect(
    config: Mapping[str, object], secrets: Mapping[str, str], outbound: Outbound = FOR_OPERATOR
) -> MySQLSource:
    return MySQLSource(read(Config, config, secrets, source="mysql"), outbound)


class MySQLSource:
    """One chunk per plan: MySQL connections cannot share a snapshot, and one statement sees one."""

    dialect = "mysql"

    def __init__(self, config: Config, outbound: Outbound = FOR_OPERATOR) -> None:
        self.config = config
        self._outbound = outbound

    async def __aenter__(self) -> MySQLSource:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def test(self) -> str:
        [(version,)] = await self.ask("SELECT version()")
        return f"{'MariaDB' if 'MariaDB' in version else 'MySQL'} {version}"

    async def schema(self, sql: str) -> pa.Schema:
        return await self._within(
            lambda session, connection: schema_of(session.columns(connection, sql))
        )

    async def plan(self, sql: str, limits: Limits) -> Plan:  # noqa: ARG002 - one chunk fits any limit
        return Plan(chunks=[Chunk(number=0, sql=sql)], schema=await self.schema(sql))

    def stream(self, chunk: Chunk, *, trace: str = "") -> AsyncGenerator[pa.RecordBatch]:
        session = Session(self.config, self._outbound, trace=trace)

        def read_all() -> Iterator[pa.RecordBatch]:
            with session.opened() as connection:
                yield from session.batches(connection, chunk.sql)

        return threaded_stream.stream(
            read_all, session.cancel, name="mysql", silence=self.config.silence_seconds
        )

    @property
    def catalog(self) -> MySQLCatalog:
        return MySQLCatalog(self)

    async def ask(self, sql: str, *values: object) -> list[Row]:
        return await self._within(lambda _, connection: connection.rows(sql, *values))

    async def _within(self, work: Callable[[Session, Connection], T]) -> T:
        session = Session(self.config, self._outbound)

        def opened() -> T:
            with session.opened() as connection:
                return work(session, connection)

        return await threaded_stream.call(
            opened, session.cancel, name="mysql", within=_ANSWER_SECONDS
        )
