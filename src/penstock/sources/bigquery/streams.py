"""BigQuery's Storage Read API: a session is one moment of a table, a stream a part of it as Arrow.

The calls are made on the channel itself, not through Google's client: that one waits for a stream's
first message before it hands out what could cancel it. A stream whose connection breaks is gone on
with at the row it had come to.
"""

# mypy: disable-error-code="import-untyped, no-untyped-call"
from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import grpc
import pyarrow as pa
from google.cloud.bigquery_storage_v1 import types as messages

from penstock.kit import logging
from penstock.sources.bigquery.failure import is_passing, rpc_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.kit.outbound import Outbound
    from penstock.sources.bigquery.config import Config
    from penstock.sources.bigquery.credentials import Credentials
    from penstock.sources.bigquery.jobs import Destination

_SERVICE = "/google.cloud.bigquery.storage.v1.BigQueryRead"
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_SETBACKS, _FIRST_DELAY, _LONGEST_DELAY = 6, 0.1, 5.0

log = logging.get("sources.bigquery")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    name: str
    streams: tuple[str, ...]
    rows: int


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
            made = self._create(
                request,
                metadata=metadata,
                timeout=self._config.request_timeout,
                wait_for_ready=False,
            )
        except grpc.RpcError as e:
            raise rpc_failure(e) from None
        names = tuple(stream.name for stream in made.streams)
        return Session(name=made.name, streams=names, rows=made.estimated_row_count)

    def rows(self, stream: str, offset: int) -> Any:
        """The call: an iterator of answers that can be cancelled."""
        request = messages.ReadRowsRequest(read_stream=stream, offset=offset)
        return self._read(request, metadata=self._metadata(f"read_stream={quote(stream)}"))

    def _metadata(self, routing: str) -> list[tuple[str, str]]:
        # gRPC resolves by itself; its hosts are Google's, by TLS, or an emulator's literal address.
        host, _, port = self._config.storage_target.rpartition(":")
        with suppress(OSError):
            self._outbound.addresses(host, int(port))
        return [("x-goog-request-params", routing), *self._credentials.headers_now().items()]


class Reading:
    """One stream from its first row to its last, in the thread that asks."""

    def __init__(self, storage: Storage, stream: str) -> None:
        self._storage = storage
        self._stream = stream
        self._stopped = threading.Event()
        self._call: Any = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        offset, setbacks = 0, 0
        while not self._stopped.is_set():
            try:
                for batch in self._from(offset):
                    yield batch
                    offset, setbacks = offset + batch.num_rows, 0
            except grpc.RpcError as e:
                setbacks += 1
                if self._stopped.is_set() or setbacks > _SETBACKS or not is_passing(e):
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
        self._call = self._storage.rows(self._stream, offset)
        schema: pa.Schema | None = None
        for answer in self._call:
            if schema is None:
                schema = pa.ipc.read_schema(pa.py_buffer(answer.arrow_schema.serialized_schema))
            serialized = answer.arrow_record_batch.serialized_record_batch
            yield pa.ipc.read_record_batch(pa.py_buffer(serialized), schema)
