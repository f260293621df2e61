"""Spark behind Spark Connect. We name the session and the operation ourselves, before anything
runs.

An execution is reattachable: it goes on when its stream ends, until nobody asked after it for the
server's `spark.connect.execute.manager.detachedTimeout`. A look is a stream that is listened to for
a moment. Whoever finds an operation that another attempt may have started attaches to it, and
starts nothing.
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
    Held,
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
_AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


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

    async def begin(self, sql: str) -> Held:  # noqa: ARG002 - it is sent with the first look
        operation = str(uuid4())
        return Held(query_id=operation, handle={"session": str(uuid4()), "operation": operation})

    async def look(self, held: Held, sql: str, *, again: bool) -> Look:
        started = again or "started" in held.handle
        method, request = (
            ("ReattachExecute", self._attach(held))
            if started
            else ("ExecutePlan", self._execute(held, sql))
        )
        try:
            rows = await self._listen(method, request)
        except grpc.aio.AioRpcError as e:
            return self._broken(e)
        if rows is None:
            return Running(
                held=Held(query_id=held.query_id, handle={**held.handle, "started": "yes"})
            )
        return Finished(rows=rows)

    async def cancel(self, held: Held) -> None:
        asked = self._asked(held, 3) | {4: _BY_OPERATION, 6: held.handle["operation"]}
        await self._tell("Interrupt", asked)
        await self.release(held)

    async def release(self, held: Held) -> None:
        await self._tell(
            "ReleaseExecute", self._asked(held, 4) | {3: held.handle["operation"], 5: {}}
        )
        await self._tell("ReleaseSession", self._asked(held, 3))

    async def _listen(
        self, method: str, request: dict[int, Sent]
    ) -> list[dict[str, object]] | None:
        """The rows, when the end was heard within a moment."""
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

    async def _tell(self, method: str, request: dict[int, Sent]) -> None:
        call = self._channel.unary_unary(
            _SERVICE + method, request_serializer=encode, response_deserializer=decode
        )
        try:
            await call(request, metadata=self._metadata, timeout=ANSWER_SECONDS)
        except grpc.aio.AioRpcError as e:
            if e.code() in _AWAY:
                raise gone(self._address, EngineFailed(str(e.details()))) from None

    def _broken(self, error: grpc.aio.AioRpcError) -> Failed:
        said = str(error.details() or "")
        if "INVALID_HANDLE" in said or "INVALID_CURSOR" in said:
            return Failed(
                error=EngineUnavailable("The server does not know the statement any more.")
            )
        if error.code() in _AWAY:
            raise gone(self._address, EngineFailed(said)) from None
        if "OPERATION_CANCELED" in said:
            return Failed(error=EngineFailed("Somebody ended the statement at the server."))
        return Failed(error=failure(said, classes=_classes(error)))

    def _asked(self, held: Held, client_type: int) -> dict[int, Sent]:
        who: dict[int, Sent] = {1: self._address.user, 2: self._address.user}
        return {1: held.handle["session"], 2: who, client_type: _CLIENT}

    def _execute(self, held: Held, sql: str) -> dict[int, Sent]:
        plan: dict[int, Sent] = {2: {5: {1: sql}}}
        reattachable: dict[int, Sent] = {1: {1: 1}}
        return self._asked(held, 4) | {
            6: held.handle["operation"],
            3: plan,
            5: reattachable,
            7: ["penstock"],
        }

    def _attach(self, held: Held) -> dict[int, Sent]:
        return self._asked(held, 4) | {3: held.handle["operation"]}


def _rows(response: Message) -> list[dict[str, object]]:
    """A command answers with a relation that holds its rows in Arrow's format."""
    local = response.message(5).message(1).message(11)
    if not local.raw(1):
        return []
    return list(pa.ipc.open_stream(local.raw(1)).read_all().to_pylist())


def _classes(error: grpc.aio.AioRpcError) -> str:
    """The names of the Java exceptions are among the details that only Spark's own client unpacks."""
    metadata: Mapping[str, bytes] = dict(error.trailing_metadata() or ())
    return metadata.get("grpc-status-details-bin", b"").decode(errors="replace")
