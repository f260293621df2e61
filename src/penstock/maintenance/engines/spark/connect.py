"""Remote engine over Spark Connect, with reattachable executions.

The client chooses the session and operation ids, so they are stored before anything runs. An
execution continues without a stream until the server's
`spark.connect.execute.manager.detachedTimeout`. Each poll opens a stream for a moment. If another
attempt may have started the operation, the poll reattaches instead of starting it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import uuid4

import grpc
import grpc.aio
import pyarrow as pa

from penstock.maintenance.engines.contract import (
    EngineFailed,
    EngineUnavailable,
    Failed,
    Finished,
    RemoteQuery,
    Running,
)
from penstock.maintenance.engines.spark.failure import failure
from penstock.maintenance.engines.spark.hive_wire import gone
from penstock.maintenance.engines.spark.protobuf import Message, decode, encode
from penstock.maintenance.engines.spark.statements import SparkStatements

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.maintenance.engines.contract import Look
    from penstock.maintenance.engines.spark.address import Address
    from penstock.maintenance.engines.spark.protobuf import Sent

LISTEN_SECONDS = 1.0
ANSWER_SECONDS = 20.0
_SERVICE = "/spark.connect.SparkConnectService/"
_CLIENT = "penstock"
_BY_OPERATION = 3
_UNREACHABLE = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
)


class ConnectEngine(SparkStatements):
    def __init__(self, address: Address) -> None:
        super().__init__(address)
        target = f"{address.host}:{address.port}"
        limit = [("grpc.max_receive_message_length", 128 * 1024 * 1024)]
        secure = grpc.ssl_channel_credentials() if address.tls else None
        self._channel = (
            grpc.aio.insecure_channel(target, options=limit)
            if secure is None
            else grpc.aio.secure_channel(target, secure, options=limit)
        )
        self._metadata = (("authorization", f"Bearer {address.token}"),) if address.token else ()

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()

    async def begin(self, sql: str) -> RemoteQuery:  # noqa: ARG002 - sent with the first poll
        operation = str(uuid4())
        return RemoteQuery(
            query_id=operation, handle={"session": str(uuid4()), "operation": operation}
        )

    async def look(self, query: RemoteQuery, sql: str, *, again: bool) -> Look:
        started = again or "started" in query.handle
        method, request = (
            ("ReattachExecute", self._attach(query))
            if started
            else ("ExecutePlan", self._execute(query, sql))
        )
        try:
            rows = await self._listen(method, request)
        except grpc.aio.AioRpcError as e:
            return self._error_result(e)
        if rows is None:
            return Running(
                held=RemoteQuery(query_id=query.query_id, handle={**query.handle, "started": "yes"})
            )
        return Finished(rows=rows)

    async def cancel(self, query: RemoteQuery) -> None:
        request = self._request(query, 3) | {4: _BY_OPERATION, 6: query.handle["operation"]}
        await self._call("Interrupt", request)
        await self.release(query)

    async def release(self, query: RemoteQuery) -> None:
        await self._call(
            "ReleaseExecute", self._request(query, 4) | {3: query.handle["operation"], 5: {}}
        )
        await self._call("ReleaseSession", self._request(query, 3))

    async def _listen(
        self, method: str, request: dict[int, Sent]
    ) -> list[dict[str, object]] | None:
        """The rows if the execution ends within LISTEN_SECONDS, else None."""
        open_stream = self._channel.unary_stream(
            _SERVICE + method, request_serializer=encode, response_deserializer=decode
        )
        stream = open_stream(request, metadata=self._metadata)
        rows: list[dict[str, object]] = []
        try:
            async with asyncio.timeout(LISTEN_SECONDS):
                async for response in stream:
                    rows += _rows(response)
        except TimeoutError:
            return None
        finally:
            stream.cancel()
        return rows

    async def _call(self, method: str, request: dict[int, Sent]) -> None:
        call = self._channel.unary_unary(
            _SERVICE + method, request_serializer=encode, response_deserializer=decode
        )
        try:
            await call(request, metadata=self._metadata, timeout=ANSWER_SECONDS)
        except grpc.aio.AioRpcError as e:
            if e.code() in _UNREACHABLE:
                raise gone(self._address, EngineFailed(str(e.details()))) from None

    def _error_result(self, error: grpc.aio.AioRpcError) -> Failed:
        details = str(error.details() or "")
        if "INVALID_HANDLE" in details or "INVALID_CURSOR" in details:
            return Failed(error=EngineUnavailable("The server no longer knows the statement."))
        if error.code() in _UNREACHABLE:
            raise gone(self._address, EngineFailed(details)) from None
        if "OPERATION_CANCELED" in details:
            return Failed(error=EngineFailed("The statement was cancelled on the server."))
        return Failed(error=failure(details, classes=_classes(error)))

    def _request(self, query: RemoteQuery, client_type: int) -> dict[int, Sent]:
        who: dict[int, Sent] = {1: self._address.user, 2: self._address.user}
        return {1: query.handle["session"], 2: who, client_type: _CLIENT}

    def _execute(self, query: RemoteQuery, sql: str) -> dict[int, Sent]:
        plan: dict[int, Sent] = {2: {5: {1: sql}}}
        reattachable: dict[int, Sent] = {1: {1: 1}}
        return self._request(query, 4) | {
            6: query.handle["operation"],
            3: plan,
            5: reattachable,
            7: ["penstock"],
        }

    def _attach(self, query: RemoteQuery) -> dict[int, Sent]:
        return self._request(query, 4) | {3: query.handle["operation"]}


def _rows(response: Message) -> list[dict[str, object]]:
    """A command returns a local relation with its rows in Arrow IPC format."""
    local = response.message(5).message(1).message(11)
    if not local.raw(1):
        return []
    return list(pa.ipc.open_stream(local.raw(1)).read_all().to_pylist())


def _classes(error: grpc.aio.AioRpcError) -> str:
    """The status details as text; they contain the Java exception names."""
    metadata: Mapping[str, bytes] = dict(error.trailing_metadata() or ())
    return metadata.get("grpc-status-details-bin", b"").decode(errors="replace")
