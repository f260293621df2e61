"""The Trino and Starburst source.

A plan has one chunk: Trino parallelizes the read itself, and one query sees one snapshot. Every
call needs a role: that of the chunk (`extra["starburst_role"]`), of `as_role` or of the
configuration. There is no default.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from penstock.kit.clock import SYSTEM, Clock
from penstock.kit.errors import PenstockError
from penstock.kit.outbound import FOR_OPERATOR, Outbound
from penstock.sources.contract import Chunk, Limits, Plan
from penstock.sources.roles import require_role
from penstock.sources.trino import types
from penstock.sources.trino.catalog import TrinoCatalog
from penstock.sources.trino.client import Client
from penstock.sources.trino.coldstart import ColdStart
from penstock.sources.trino.headers import Session
from penstock.sources.trino.reading import Reading
from penstock.sources.trino.rewrite import describing, in_utc
from penstock.sources.trino.statements import Statements
from penstock.sources.trino.unload import TrinoUnload
from penstock.sources.trino.wire import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    import pyarrow as pa

    from penstock.sources.receipts import Receipts
    from penstock.sources.trino.config import Config

ROLE, COLUMNS = "starburst_role", "columns"


class TrinoSource:
    dialect = "trino"

    def __init__(
        self,
        config: Config,
        *,
        outbound: Outbound = FOR_OPERATOR,
        clock: Clock = SYSTEM,
        client: Client | None = None,
    ) -> None:
        self._config = config
        self._clock = clock
        self._role = config.starburst_role
        self._client = client or Client(config, Wire(config, outbound, clock=clock), clock=clock)

    async def __aenter__(self) -> TrinoSource:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    def as_role(self, role: str | None) -> TrinoSource:
        """The same source with another role. It shares the connections of this one; close only
        this one."""
        other = TrinoSource(self._config, clock=self._clock, client=self._client)
        other._role = role
        return other

    async def test(self) -> str:
        [[version]] = await self._client.rows("SELECT version()", Session(role=self._role))
        return f"Trino {version}"

    async def schema(self, sql: str) -> pa.Schema:
        return types.schema(types.columns(await self._describe(sql, self._session())))

    async def plan(self, sql: str, limits: Limits) -> Plan:  # noqa: ARG002 - one chunk fits any limit
        described = await self._describe(sql, self._session())
        extra = {ROLE: self._role, COLUMNS: described}
        return Plan(
            chunks=[Chunk(number=0, sql=sql, extra=extra)],
            schema=types.schema(types.columns(described)),
        )

    def stream(self, chunk: Chunk, *, trace: str = "") -> AsyncGenerator[pa.RecordBatch]:
        return self._stream(chunk, trace, None)

    def spooled_stream(
        self, chunk: Chunk, receipts: Receipts, *, trace: str = ""
    ) -> AsyncGenerator[pa.RecordBatch]:
        return self._stream(chunk, trace, receipts)

    async def _stream(
        self, chunk: Chunk, trace: str, receipts: Receipts | None
    ) -> AsyncGenerator[pa.RecordBatch]:
        session = self._session(chunk.extra.get(ROLE), trace)
        columns = types.columns(
            chunk.extra.get(COLUMNS) or await self._describe(chunk.sql, session)
        )
        sql, cold, yielded = in_utc(chunk.sql, columns), ColdStart(self._clock), False
        while True:
            reading = Reading(self._client, sql, session, columns=columns, receipts=receipts)
            try:
                async with aclosing(reading.batches()) as batches:
                    async for batch in batches:
                        yielded = True
                        yield batch
            except PenstockError as e:
                if yielded:
                    raise  # a retry would repeat rows
                await cold.pause(e)
            else:
                return

    @property
    def catalog(self) -> TrinoCatalog:
        return TrinoCatalog(self._client, self._session())

    def unload(self, *, trace: str = "") -> TrinoUnload:
        return TrinoUnload(self._client, self._session(trace=trace))

    def statements(self, *, trace: str = "") -> Statements:
        """Statements of any kind, parked between polls."""
        return Statements(self._client, self._session(trace=trace))

    def _session(self, role: str | None = None, trace: str = "") -> Session:
        return Session(role=require_role(role or self._role), trace=trace)

    async def _describe(self, sql: str, session: Session) -> Sequence[types.Described]:
        cold = ColdStart(self._clock)
        while True:
            try:
                return await self._client.columns(describing(sql), session)
            except PenstockError as e:
                await cold.pause(e)
