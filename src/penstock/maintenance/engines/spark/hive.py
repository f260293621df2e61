"""Spark behind HiveServer2: its own Thrift server, or Kyuubi.

The session is opened and written down first. A statement runs from the moment it is sent, so
whoever finds a session that another attempt may have used closes it, and all that runs in it ends;
what was committed by then is found in the table.

Every look has a connection of its own, and a session must outlive them. A server closes, with a
connection, the session that was opened last on it; so a second one is opened, and closed, and the
first is nobody's. HTTP knows no connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.maintenance.engines.contract import (
    EngineFailed,
    EngineUnavailable,
    Failed,
    Finished,
    Held,
    Running,
)
from penstock.maintenance.engines.spark.failure import failure
from penstock.maintenance.engines.spark.hive_wire import wire
from penstock.maintenance.engines.spark.statements import SparkStatements
from penstock.maintenance.engines.spark.thrift import Long, Record, Texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.maintenance.engines.contract import Look
    from penstock.maintenance.engines.spark.hive_wire import Wire
    from penstock.maintenance.engines.spark.thrift import Sent

PROTOCOL_V8 = 7
SETTINGS = {
    "set:hiveconf:kyuubi.session.close.on.disconnect": "false",
    "set:hiveconf:spark.sql.parser.escapedStringLiterals": "false",
    "set:hiveconf:spark.sql.variable.substitute": "false",
}
PAGE = 10_000
MOST_ROWS = 1_000_000
_SUCCESS, _SUCCESS_WITH_INFO, _INVALID_HANDLE = 0, 1, 4
_STRANGE = ("Invalid OperationHandle", "Invalid SessionHandle", "Session does not exist")
_UNDER_WAY = (0, 1, 7)
"""Initialized, running, pending."""
_FINISHED, _ERROR = 2, 5


class HiveEngine(SparkStatements):
    async def begin(self, sql: str) -> Held:  # noqa: ARG002 - it is sent with the first look
        opening: dict[int, Sent] = {
            1: PROTOCOL_V8,
            2: self._address.user,
            3: self._address.secret or "x",
            4: Texts(SETTINGS),
        }
        async with wire(self._address) as server:
            session = await _opened(server, opening)
            if not self._address.http:
                await _close(server, await _opened(server, opening))
        return session

    async def look(self, held: Held, sql: str, *, again: bool) -> Look:
        async with wire(self._address) as server:
            try:
                if "operation" in held.handle:
                    return await self._follow(server, held)
                if not again:
                    return await self._start(server, held, sql)
                await _close(server, held)
                return Failed(
                    error=EngineUnavailable(
                        "Nobody knows of the statement; its session was closed."
                    )
                )
            except _HandleGone:
                return Failed(
                    error=EngineUnavailable("The server does not know the statement any more.")
                )

    async def cancel(self, held: Held) -> None:
        """The session goes too, and with it a statement that nobody knows of."""
        async with wire(self._address) as server:
            try:
                if "operation" in held.handle:
                    _said(await server.call("CancelOperation", {1: _operation(held.handle)}))
                await _close(server, held)
            except _HandleGone:
                return

    async def release(self, held: Held) -> None:
        async with wire(self._address) as server:
            try:
                await _close(server, held)
            except _HandleGone:
                return

    async def _start(self, server: Wire, held: Held, sql: str) -> Running:
        request: dict[int, Sent] = {1: _session(held.handle), 2: sql, 3: Texts({}), 4: True}
        found = _said(await server.call("ExecuteStatement", request)).record(2)
        guid, secret = found.record(1).raw(1).hex(), found.record(1).raw(2).hex()
        more = {
            "operation": guid,
            "operation_secret": secret,
            "operation_type": str(found.number(2)),
        }
        return Running(held=Held(query_id=guid, handle={**held.handle, **more}), at_once=True)

    async def _follow(self, server: Wire, held: Held) -> Look:
        operation = _operation(held.handle)
        status = _said(await server.call("GetOperationStatus", {1: operation}))
        match status.number(2):
            case state if state in _UNDER_WAY:
                return Running(held=held)
            case state if state == _FINISHED:
                return Finished(rows=await _rows(server, operation))
            case state if state == _ERROR:
                return Failed(error=failure(status.text(5)))
            case _:
                return Failed(error=EngineFailed("Somebody ended the statement at the server."))


class _HandleGone(Exception):
    """The server has no such session or operation."""


def _said(reply: Record) -> Record:
    status = reply.record(1)
    if status.number(1) in (_SUCCESS, _SUCCESS_WITH_INFO):
        return reply
    message = status.text(5)
    if status.number(1) == _INVALID_HANDLE or any(word in message for word in _STRANGE):
        raise _HandleGone
    raise failure(message)


async def _opened(server: Wire, opening: dict[int, Sent]) -> Held:
    session = _said(await server.call("OpenSession", opening)).record(3).record(1)
    guid, secret = session.raw(1).hex(), session.raw(2).hex()
    return Held(query_id=guid, handle={"session": guid, "session_secret": secret})


async def _close(server: Wire, held: Held) -> None:
    _said(await server.call("CloseSession", {1: _session(held.handle)}))


async def _rows(server: Wire, operation: dict[int, Sent]) -> list[dict[str, object]]:
    described = _said(await server.call("GetResultSetMetadata", {1: operation})).record(2)
    names = [column.text(1) for column in described.records(1)]
    found: list[dict[str, object]] = []
    while len(found) < MOST_ROWS:
        request: dict[int, Sent] = {1: operation, 2: 0, 3: Long(PAGE)}
        page = _said(await server.call("FetchResults", request)).record(3)
        columns = [_column(column) for column in page.records(3)]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        found += rows
        if not rows:
            break
    return found


def _column(column: Record) -> list[object]:
    """One of the typed lists, with a bit for each value that is null."""
    [found] = [each for each in column.fields.values() if isinstance(each, Record)]
    nulls = found.raw(2)
    return [
        None if n // 8 < len(nulls) and nulls[n // 8] >> (n % 8) & 1 else _text(value)
        for n, value in enumerate(found.values(1))
    ]


def _text(value: object) -> object:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _session(handle: Mapping[str, str]) -> dict[int, Sent]:
    return {1: {1: bytes.fromhex(handle["session"]), 2: bytes.fromhex(handle["session_secret"])}}


def _operation(handle: Mapping[str, str]) -> dict[int, Sent]:
    guid, secret = bytes.fromhex(handle["operation"]), bytes.fromhex(handle["operation_secret"])
    return {1: {1: guid, 2: secret}, 2: int(handle["operation_type"]), 3: True}
