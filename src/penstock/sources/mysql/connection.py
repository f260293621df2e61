"""A PyMySQL connection with two additions: prepare without executing, and stream rows of one value.

Both use PyMySQL's protected methods, which read and write whole packets and handle errors, sequence
numbers and size limits. No other module of this driver uses PyMySQL.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pymysql
from pymysql.constants import COMMAND, FIELD_TYPE, FLAG
from pymysql.protocol import FieldDescriptorPacket

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence

    from penstock.sources.contract import Row

__all__ = ["FIELD_TYPE", "Connection", "Field", "MySQLFailure"]


class MySQLFailure(Exception):
    """An error of the server or the connection; the number is 0 if it has none."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.number = number
        self.text = text


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A result column as described by the server."""

    name: str
    kind: int
    length: int
    scale: int
    unsigned: bool
    charset: int


class Connection:
    """A connection over an already connected socket."""

    def __init__(self, raw: socket.socket, **options: object) -> None:
        with _failing():
            self._inner = pymysql.Connection(
                charset="utf8mb4", program_name="penstock", defer_connect=True, **options
            )
            self._inner.connect(raw)
        self.number: int = self._inner.thread_id()
        self.version: str = self._inner.get_server_info()

    def execute(self, statement: str) -> None:
        with _failing():
            self._inner.query(statement)

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Run an internal query with a small result."""
        with _failing(), self._inner.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())

    def prepare(self, sql: str) -> Sequence[Field]:
        """The result columns of one statement; none if it returns no rows."""
        with _failing():
            self._inner._execute_command(COMMAND.COM_STMT_PREPARE, sql)
            answer = self._inner._read_packet()
            answer.read_uint8()
            statement, columns, parameters = (
                answer.read_uint32(),
                answer.read_uint16(),
                answer.read_uint16(),
            )
            for _ in range(parameters + bool(parameters)):
                self._inner._read_packet()
            fields = [self._inner._read_packet(FieldDescriptorPacket) for _ in range(columns)]
            if columns:
                self._inner._read_packet()
            self._inner._execute_command(COMMAND.COM_STMT_CLOSE, statement.to_bytes(4, "little"))
            return [_field(field) for field in fields]

    def values(self, sql: str) -> Iterator[bytes | None]:
        """The only column of a query, streamed row by row."""
        with _failing():
            self._inner._execute_command(COMMAND.COM_QUERY, sql)
            read = self._inner._read_packet
            for _ in range(read().read_length_encoded_integer()):
                read(FieldDescriptorPacket)
            read()
            while not (row := read()).is_eof_packet():
                yield row.read_length_coded_string()

    def close(self) -> None:
        """Close without COM_QUIT, which would first read the remaining rows."""
        self._inner._force_close()


@contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except pymysql.MySQLError as e:
        match e.args:
            case (int(number), str(text)):
                raise MySQLFailure(number, text) from None
            case _:
                raise MySQLFailure(0, str(e)) from None


def _field(field: FieldDescriptorPacket) -> Field:
    return Field(
        name=field.name,
        kind=field.type_code,
        length=field.length,
        scale=field.scale,
        unsigned=bool(field.flags & FLAG.UNSIGNED),
        charset=field.charsetnr,
    )
