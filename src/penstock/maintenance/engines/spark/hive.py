"""Remote engine over HiveServer2: Spark's Thrift server or Kyuubi.

The session is opened and stored first. A statement runs as soon as it is sent, so a session that
another attempt may have used is closed, which ends everything in it; what was committed by then is
visible in the table.

Each poll uses its own connection, and the session must outlive it. On disconnect, a server closes
the session that was opened last on the connection. So a second session is opened and closed, which
detaches the first one from the connection. This does not apply to HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.maintenance.engines.contract import (
    EngineFailed,
    EngineUnavailable,
    Failed,
    Finished,
    RemoteQuery,
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
_UNKNOWN_HANDLE = ("Invalid OperationHandle", "Invalid SessionHandle", "Session does not exist")
_ACTIVE = (0, 1, 7)
"""Initialized, running, pending."""
_FINISHED, _ERROR = 2, 5


class HiveEngine(SparkStatements):
    async def begin(self, sql: str) -> RemoteQuery:  # noqa: ARG002 - sent with the first poll
        opening: dict[int, Sent] = {
            1: PROTOCOL_V8,
            2: self._address.user,
            3: self._address.secret or "x",
            4: Texts(SETTINGS),
        }
        async with wire(self._address) as server:
            session = await _open_session(server, opening)
            if not self._address.http:
                await _close_session(server, await _open_session(server, opening))
        return session

    async def look(self, query: RemoteQuery, sql: str, *, again: bool) -> Look:
        async with wire(self._address) as server:
            try:
                if "operation" in query.handle:
                    return await self._follow(server, query)
                if not again:
                    return await self._start(server, query, sql)
                await _close_session(server, query)
                return Failed(
                    error=EngineUnavailable(
                        "Another attempt may have started the statement; its session was closed."
                    )
                )
            except _HandleGone:
                return Failed(error=EngineUnavailable("The server no longer knows the statement."))

    async def cancel(self, query: RemoteQuery) -> None:
        """Closes the session too, which also ends a statement whose handle was never stored."""
        async with wire(self._address) as server:
            try:
                if "operation" in query.handle:
                    _checked(await server.call("CancelOperation", {1: _operation(query.handle)}))
                await _close_session(server, query)
            except _HandleGone:
                return

    async def release(self, query: RemoteQuery) -> None:
        async with wire(self._address) as server:
            try:
                await _close_session(server, query)
            except _HandleGone:
                return

    async def _start(self, server: Wire, query: RemoteQuery, sql: str) -> Running:
        request: dict[int, Sent] = {1: _session(query.handle), 2: sql, 3: Texts({}), 4: True}
        handle = _checked(await server.call("ExecuteStatement", request)).record(2)
        guid, secret = handle.record(1).raw(1).hex(), handle.record(1).raw(2).hex()
        more = {
            "operation": guid,
            "operation_secret": secret,
            "operation_type": str(handle.number(2)),
        }
        return Running(
            held=RemoteQuery(query_id=guid, handle={**query.handle, **more}), at_once=True
        )

    async def _follow(self, server: Wire, query: RemoteQuery) -> Look:
        operation = _operation(query.handle)
        status = _checked(await server.call("GetOperationStatus", {1: operation}))
        match status.number(2):
            case state if state in _ACTIVE:
                return Running(held=query)
            case state if state == _FINISHED:
                return Finished(rows=await _rows(server, operation))
            case state if state == _ERROR:
                return Failed(error=failure(status.text(5)))
            case _:
                return Failed(error=EngineFailed("The statement was cancelled on the server."))


class _HandleGone(Exception):
    """The server has no such session or operation."""


def _checked(reply: Record) -> Record:
    status = reply.record(1)
    if status.number(1) in (_SUCCESS, _SUCCESS_WITH_INFO):
        return reply
    message = status.text(5)
    if status.number(1) == _INVALID_HANDLE or any(word in message for word in _UNKNOWN_HANDLE):
        raise _HandleGone
    raise failure(message)


async def _open_session(server: Wire, opening: dict[int, Sent]) -> RemoteQuery:
    session = _checked(await server.call("OpenSession", opening)).record(3).record(1)
    guid, secret = session.raw(1).hex(), session.raw(2).hex()
    return RemoteQuery(query_id=guid, handle={"session": guid, "session_secret": secret})


async def _close_session(server: Wire, query: RemoteQuery) -> None:
    _checked(await server.call("CloseSession", {1: _session(query.handle)}))


async def _rows(server: Wire, operation: dict[int, Sent]) -> list[dict[str, object]]:
    described = _checked(await server.call("GetResultSetMetadata", {1: operation})).record(2)
    names = [column.text(1) for column in described.records(1)]
    result: list[dict[str, object]] = []
    while len(result) < MOST_ROWS:
        request: dict[int, Sent] = {1: operation, 2: 0, 3: Long(PAGE)}
        page = _checked(await server.call("FetchResults", request)).record(3)
        columns = [_column(column) for column in page.records(3)]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        result += rows
        if not rows:
            break
    return result


def _column(column: Record) -> list[object]:
    """The values of a result column: one typed list with a null bitmap."""
    [typed_list] = [item for item in column.fields.values() if isinstance(item, Record)]
    nulls = typed_list.raw(2)
    return [
        None if n // 8 < len(nulls) and nulls[n // 8] >> (n % 8) & 1 else _text(value)
        for n, value in enumerate(typed_list.values(1))
    ]


def _text(value: object) -> object:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _session(handle: Mapping[str, str]) -> dict[int, Sent]:
    return {1: {1: bytes.fromhex(handle["session"]), 2: bytes.fromhex(handle["session_secret"])}}


def _operation(handle: Mapping[str, str]) -> dict[int, Sent]:
    guid, secret = bytes.fromhex(handle["operation"]), bytes.fromhex(handle["operation_secret"])
    return {1: {1: guid, 2: secret}, 2: int(handle["operation_type"]), 3: True}
