"""One connection, used by one thread; `cancel` may be called from any thread.

The socket is created here so that a cancel can shut it down, which ends a blocked read at once. The
server notices a lost client only on its next write, so its thread is killed as well.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING

from penstock.sources.errors import SourceQueryError
from penstock.sources.mysql import types
from penstock.sources.mysql.connection import Connection
from penstock.sources.mysql.failure import translated
from penstock.sources.single_table import trace_comment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from penstock.kit.outbound import Outbound
    from penstock.sources.mysql.config import Config

_BLOCK = 8 * 1024 * 1024
_FIRST_ROWS = 64
_MAX_ROWS = 32_768

_NO_SUCH_THREAD = 1094
_BEGIN = (
    # The server drops a client that reads nothing for net_write_timeout; ours may be waiting for
    # its object store.
    "SET SESSION time_zone = '+00:00', net_write_timeout = 86400",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)


class Session:
    def __init__(self, config: Config, outbound: Outbound, *, trace: str = "") -> None:
        self._config = config
        self._outbound = outbound
        self._trace = trace
        self._lock = threading.Lock()
        self._handle: socket.socket | None = None
        self._number: int | None = None
        self._cancelled = False

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        with translated(self._config):
            connection = self._connect()
            try:
                self._begin(connection)
                yield connection
            finally:
                self._forget()
                connection.close()

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            number = self._number
            if self._handle is not None:
                _shut(self._handle)
        if number is not None:
            self._kill(number)

    def _kill(self, number: int) -> None:
        try:
            with Session(self._config, self._outbound).opened() as other:
                other.execute(f"KILL {number}")
        except SourceQueryError as e:
            if e.details.get("errno") != _NO_SUCH_THREAD:
                raise

    def columns(self, connection: Connection, sql: str) -> Sequence[types.OutputColumn]:
        """The columns of a query. It is prepared alone, to ensure one statement, and as wrapped."""
        columns = types.output_columns(
            connection.prepare(sql), tinyint1_is_bool=self._config.tinyint1_is_bool
        )
        connection.prepare(types.query(columns, sql))
        return columns

    def batches(self, connection: Connection, sql: str) -> Iterator[pa.RecordBatch]:
        columns = self.columns(connection, sql)
        schema = types.schema_of(columns)
        lines = connection.values(f"{trace_comment(self._trace)}{types.query(columns, sql)}")
        rows = _FIRST_ROWS
        while block := list(islice(lines, rows)):
            yield types.parse(columns, schema, block)
            size = sum(len(line or b"") for line in block)
            rows = max(1, min(_MAX_ROWS, _BLOCK * len(block) // max(size, 1)))

    def _connect(self) -> Connection:
        raw = _socket(self._config, self._outbound)
        handle = socket.socket(raw.family, raw.type, fileno=os.dup(raw.fileno()))
        with self._lock:
            self._handle = handle
            if self._cancelled:
                _shut(handle)
        try:
            return Connection(
                raw,
                host=self._config.host,
                user=self._config.user,
                password=self._config.password,
                database=self._config.database,
                **_tls(self._config),
            )
        except BaseException:
            self._forget()
            raise

    def _begin(self, connection: Connection) -> None:
        with self._lock:
            self._number = connection.number
        for statement in _BEGIN:
            connection.execute(statement)
        limit = "max_statement_time" if "MariaDB" in connection.version else "max_execution_time"
        connection.execute(f"SET SESSION {limit} = 0")

    def _forget(self) -> None:
        with self._lock:
            handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()


def _socket(config: Config, outbound: Outbound) -> socket.socket:
    if config.host.startswith("/"):
        outbound.check_local(config.host)
        return _unix_socket(config.host)
    raw = _connected(config, outbound)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
    return raw


def _connected(config: Config, outbound: Outbound) -> socket.socket:
    """Connect to the first reachable address of those allowed, without resolving the name again."""
    *others, last = (str(address) for address in outbound.addresses(config.host, config.port))
    for address in others:
        with suppress(OSError):
            return socket.create_connection((address, config.port), config.connect_seconds)
    return socket.create_connection((last, config.port), config.connect_seconds)


def _unix_socket(path: str) -> socket.socket:
    raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        raw.connect(path)
    except OSError:
        raw.close()
        raise
    return raw


def _tls(config: Config) -> dict[str, object]:
    match config.tls:
        case "disable":
            return {"ssl_disabled": True}
        case "prefer":
            return {}
        case "require":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return {"ssl": context}
        case "verify":
            return {"ssl": ssl.create_default_context(cafile=config.tls_ca)}


def _shut(handle: socket.socket) -> None:
    with suppress(OSError):
        handle.shutdown(socket.SHUT_RDWR)
