"""The subset of Thrift's binary protocol that HiveServer2 needs; struct fields go by number.

The published clients block the event loop and need a compiler or a SASL library.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from penstock.maintenance.engines.contract import EngineFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BOOL, BYTE, DOUBLE, I16, I32, I64, STRING, STRUCT, MAP, SET, LIST = (
    2,
    3,
    4,
    6,
    8,
    10,
    11,
    12,
    13,
    14,
    15,
)
_NUMBERS = {
    BYTE: struct.Struct("!b"),
    I16: struct.Struct("!h"),
    I32: struct.Struct("!i"),
    I64: struct.Struct("!q"),
}
_DOUBLE = struct.Struct("!d")
_VERSION = 0x80010000
_CALL, _EXCEPTION = 1, 3
_DEEPEST = 32

Sent: TypeAlias = "bool | int | Long | bytes | str | dict[int, Sent] | Texts"


@dataclass(frozen=True, slots=True)
class Long:
    """A 64-bit integer; a plain int is sent as 32 bits."""

    of: int


@dataclass(frozen=True, slots=True)
class Texts:
    """A map of strings; a plain dict is sent as a struct."""

    of: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Record:
    """A decoded struct; a missing field is its type's empty value."""

    fields: Mapping[int, object] = field(default_factory=dict)

    def number(self, key: int) -> int:
        value = self.fields.get(key, 0)
        return value if isinstance(value, int) else 0

    def raw(self, key: int) -> bytes:
        value = self.fields.get(key, b"")
        return value if isinstance(value, bytes) else b""

    def text(self, key: int) -> str:
        return self.raw(key).decode(errors="replace")

    def record(self, key: int) -> Record:
        value = self.fields.get(key)
        return value if isinstance(value, Record) else Record()

    def values(self, key: int) -> Sequence[object]:
        value = self.fields.get(key, ())
        return value if isinstance(value, list) else ()

    def records(self, key: int) -> list[Record]:
        return [item for item in self.values(key) if isinstance(item, Record)]


def call(name: str, request: dict[int, Sent]) -> bytes:
    """Encode a call with one argument."""
    out = bytearray(struct.pack("!I", _VERSION | _CALL))
    _write(out, name)
    out += _NUMBERS[I32].pack(0)
    _write(out, {1: request})
    return bytes(out)


def answer(message: bytes) -> Record:
    """Decode the result of a call."""
    reader = _Reader(message)
    try:
        kind = reader.number(I32) & 0xFF
        reader.value(STRING)
        reader.number(I32)
        reply = reader.struct(0)
    except (struct.error, ValueError) as e:
        raise EngineFailed(f"The server does not speak Thrift's binary protocol: {e}.") from None
    if kind == _EXCEPTION:
        raise EngineFailed(f"The server returned an error: {reply.text(1)[:500]}")
    return reply.record(0)


def _write(out: bytearray, value: Sent) -> None:
    match value:
        case bool():
            out += bytes((value,))
        case int():
            out += _NUMBERS[I32].pack(value)
        case Long():
            out += _NUMBERS[I64].pack(value.of)
        case bytes() | str():
            raw = value.encode() if isinstance(value, str) else value
            out += _NUMBERS[I32].pack(len(raw)) + raw
        case Texts():
            out += bytes((STRING, STRING)) + _NUMBERS[I32].pack(len(value.of))
            for item in (text for pair in value.of.items() for text in pair):
                _write(out, item)
        case dict():
            for number, inner in value.items():
                out += bytes((_kind(inner),)) + _NUMBERS[I16].pack(number)
                _write(out, inner)
            out.append(0)


def _kind(value: Sent) -> int:
    match value:
        case bool():
            return BOOL
        case int():
            return I32
        case Long():
            return I64
        case bytes() | str():
            return STRING
        case Texts():
            return MAP
        case dict():
            return STRUCT


class _Reader:
    def __init__(self, message: bytes) -> None:
        self._message = message
        self._at = 0

    def _take(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._message):
            raise ValueError("the message is truncated")
        self._at += size
        return self._message[self._at - size : self._at]

    def number(self, kind: int) -> int:
        packed = _NUMBERS[kind]
        return int(packed.unpack(self._take(packed.size))[0])

    def struct(self, depth: int) -> Record:
        fields: dict[int, object] = {}
        while kind := self._take(1)[0]:
            key = self.number(I16)
            fields[key] = self.value(kind, depth + 1)
        return Record(fields)

    def value(self, kind: int, depth: int = 0) -> object:
        if depth > _DEEPEST:
            raise ValueError("the message is nested too deeply")
        match kind:
            case _ if kind in _NUMBERS:
                return self.number(kind)
            case _ if kind == BOOL:
                return self._take(1) != b"\0"
            case _ if kind == DOUBLE:
                return float(_DOUBLE.unpack(self._take(8))[0])
            case _ if kind == STRING:
                return self._take(self.number(I32))
            case _ if kind == STRUCT:
                return self.struct(depth)
            case _ if kind in (LIST, SET):
                inner, count = self._take(1)[0], self.number(I32)
                return [self.value(inner, depth + 1) for _ in range(count)]
            case _ if kind == MAP:
                key, inner, count = *self._take(2), self.number(I32)
                return {
                    self.value(key, depth + 1): self.value(inner, depth + 1) for _ in range(count)
                }
            case _:
                raise ValueError(f"unknown type {kind}")
