"""BigQuery's Storage Read API: a session is a snapshot of a table, a stream is a part of it.

Calls go through the gRPC channel, not Google's client, which returns a cancellable call only after
a stream's first message. A stream whose connection breaks is resumed at the next row.
"""

# mypy: disable-error-code="import-untyped, no-untyped-call"
from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

import grpc
import pyarrow as pa
from google.cloud.bigquery_storage_v1 import types as messages

from penstock.kit import logging
from penstock.sources.bigquery.failure import is_transient, rpc_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.kit.outbound import Outbound
    from penstock.sources.bigquery.config import Config
    from penstock.sources.bigquery.credentials import Credentials
    from penstock.sources.bigquery.jobs import Destination

_SERVICE = "/google.cloud.bigquery.storage.v1.BigQueryRead"
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_MAX_RETRIES, _FIRST_DELAY, _LONGEST_DELAY = 6, 0.1, 5.0

log = logging.get("sources.bigquery")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    name: str
    streams: tuple[str, ...]
    rows: int


class RowsCall(Protocol):
    """A gRPC call that streams responses."""

    def __iter__(self) -> Iterator[messages.ReadRowsResponse]: ...

    def cancel(self) -> object: ...


class Storage:
    """One channel; safe for many streams at once."""

    def __init__(self, config: Config, credentials: Credentials, outbound: Outbound) -> None:
        self._config = config
        self._outbound = outbound
        self._credentials = credentials
        self._channel = (
            grpc.insecure_channel(config.storage_target, _OPTIONS)
            if config.storage_is_plain
            else grpc.secure_channel(
                config.storage_target, grpc.ssl_channel_credentials(), _OPTIONS
            )
        )
        self._create = self._channel.unary_unary(
            f"{_SERVICE}/CreateReadSession",
            request_serializer=messages.CreateReadSessionRequest.serialize,
            response_deserializer=messages.ReadSession.deserialize,
        )
        self._read = self._channel.unary_stream(
            f"{_SERVICE}/ReadRows",
            request_serializer=messages.ReadRowsRequest.serialize,
            response_deserializer=messages.ReadRowsResponse.pb().FromString,
        )

    def close(self) -> None:
        self._channel.close()

    def session(self, table: Destination, streams: int) -> Session:
        request = messages.CreateReadSessionRequest(
            parent=f"projects/{self._config.project}",
            read_session=messages.ReadSession(
                table=table.path, data_format=messages.DataFormat.ARROW
            ),
            max_stream_count=streams,
        )
        metadata = self._metadata(f"read_session.table={quote(table.path)}")
        try:
            session = self._create(
                request,
                metadata=metadata,
                timeout=self._config.request_timeout,
                wait_for_ready=False,
            )
        except grpc.RpcError as e:
            raise rpc_failure(e) from None
        names = tuple(stream.name for stream in session.streams)
        return Session(name=session.name, streams=names, rows=session.estimated_row_count)

    def rows(self, stream: str, offset: int) -> RowsCall:
        request = messages.ReadRowsRequest(read_stream=stream, offset=offset)
        call: RowsCall = self._read(
            request, metadata=self._metadata(f"read_stream={quote(stream)}")
        )
        return call

    def _metadata(self, routing: str) -> list[tuple[str, str]]:
        # gRPC resolves names itself; hosts are Google's, over TLS, or an emulator's IP address.
        host, _, port = self._config.storage_target.rpartition(":")
        with suppress(OSError):
            self._outbound.addresses(host, int(port))
        return [("x-goog-request-params", routing), *self._credentials.headers_now().items()]


class Reading:
    """Reads one stream to its end in the calling thread, resuming after transient errors."""

    def __init__(self, storage: Storage, stream: str) -> None:
        self._storage = storage
        self._stream = stream
        self._stopped = threading.Event()
        self._call: RowsCall | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        offset, setbacks = 0, 0
        while not self._stopped.is_set():
            try:
                for batch in self._from(offset):
                    yield batch
                    offset, setbacks = offset + batch.num_rows, 0
            except grpc.RpcError as e:
                setbacks += 1
                if self._stopped.is_set() or setbacks > _MAX_RETRIES or not is_transient(e):
                    raise rpc_failure(e) from None
                log.warning(
                    "bigquery_stream_resumed", row=offset, setback=setbacks, error=e.code().name
                )
                self._stopped.wait(min(_FIRST_DELAY * 2.0**setbacks, _LONGEST_DELAY))
            else:
                return

    def cancel(self) -> None:
        self._stopped.set()
        if self._call is not None:
            self._call.cancel()

    def _from(self, offset: int) -> Iterator[pa.RecordBatch]:
        self._call = call = self._storage.rows(self._stream, offset)
        schema: pa.Schema | None = None
        for answer in call:
            if schema is None:
                schema = pa.ipc.read_schema(pa.py_buffer(answer.arrow_schema.serialized_schema))
            serialized = answer.arrow_record_batch.serialized_record_batch
            yield pa.ipc.read_record_batch(pa.py_buffer(serialized), schema)
