"""The subset of the Protocol Buffers wire format that Spark Connect needs; fields go by number."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}
_LONGEST_VARINT = 10

Sent: TypeAlias = "int | str | bytes | dict[int, Sent] | list[str]"


@dataclass(frozen=True, slots=True)
class Message:
    """A decoded message; a missing field is empty."""

    fields: Mapping[int, list[bytes]] = field(default_factory=dict)

    def __contains__(self, number: int) -> bool:
        return number in self.fields

    def raw(self, number: int) -> bytes:
        return self.fields.get(number, [b""])[-1]

    def text(self, number: int) -> str:
        return self.raw(number).decode(errors="replace")

    def message(self, number: int) -> Message:
        return decode(self.raw(number))


def encode(message: dict[int, Sent]) -> bytes:
    out = bytearray()
    for number, value in message.items():
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, int):
                out += _varint(number << 3 | _VARINT) + _varint(item)
            else:
                raw = _raw(item)
                out += _varint(number << 3 | _BYTES) + _varint(len(raw)) + raw
    return bytes(out)


def decode(raw: bytes) -> Message:
    """Varint fields are skipped: no response that we read needs one."""
    fields: dict[int, list[bytes]] = {}
    at = 0
    while at < len(raw):
        key, at = _read_varint(raw, at)
        kind = key & 7
        if kind == _VARINT:
            _, at = _read_varint(raw, at)
            continue
        size, at = (_SIZES[kind], at) if kind in _SIZES else _read_varint(raw, at)
        if kind not in (*_SIZES, _BYTES) or at + size > len(raw):
            raise ValueError("the message is truncated")
        fields.setdefault(key >> 3, []).append(raw[at : at + size])
        at += size
    return Message(fields)


def _raw(value: str | bytes | dict[int, Sent]) -> bytes:
    match value:
        case str():
            return value.encode()
        case bytes():
            return value
        case dict():
            return encode(value)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    number = 0
    for n, byte in enumerate(raw[at : at + _LONGEST_VARINT]):
        number |= (byte & 0x7F) << 7 * n
        if byte < 0x80:
            return number, at + n + 1
    raise ValueError("the message is truncated")
