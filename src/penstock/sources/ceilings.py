"""Upper limits for the resources that a source may use, set by the operator.

A source's configuration may ask for less. A value above a ceiling is rejected on write and clamped
whenever the source is opened, so a lowered ceiling also applies to stored sources.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import Field

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from penstock.sources.settings import SourceSettings

_SIZE = re.compile(r"^(?P<number>[0-9]{1,9}(\.[0-9]{1,3})?) ?(?P<prefix>[KMGT])(?P<binary>i?)B$")
Size: TypeAlias = Annotated[str, Field(pattern=_SIZE.pattern)]
"""A size as DuckDB writes it."""
_PREFIXES = "KMGT"
_MB = 1000**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """One setting of a driver: its ceiling, its default and its unit.

    With unit None the value is a size with its unit, such as `256MB`; otherwise the value times
    `unit` is in the unit of the ceiling."""

    ceiling: str
    default: float | str
    unit: float | None = 1


def _memory(default: str) -> Bounded:
    return Bounded(ceiling="memory_mb", default=default, unit=None)


def _spill(default: str) -> Bounded:
    return Bounded(ceiling="spill_mb", default=default, unit=None)


def _buffer(default: int) -> Bounded:
    return Bounded(ceiling="buffer_mb", default=default, unit=1 / _MB)


def _wait(default: float, unit: float = 1) -> Bounded:
    return Bounded(ceiling="wait_seconds", default=default, unit=unit)


BOUNDED: Mapping[str, Mapping[str, Bounded]] = {
    "bigquery": {
        "request_timeout": _wait(60),
        "retry_seconds": _wait(60),
        "silence_seconds": _wait(300.0),
    },
    "duckdb": {
        "memory_limit": _memory("256MB"),
        "spill_limit": _spill("4GB"),
        "threads": Bounded(ceiling="threads", default=2),
    },
    "elasticsearch": {
        "keep_alive_minutes": _wait(10, unit=60),
        "page_bytes": _buffer(8 * 1024 * 1024),
        "request_timeout": _wait(60),
        "retry_seconds": _wait(60),
    },
    "files": {
        "csv.block_bytes": _buffer(16 * 1024 * 1024),
        "memory_limit": _memory("256MB"),
        "retry_seconds": _wait(60.0),
        "silence_seconds": _wait(900.0),
        "spill_limit": _spill("4GB"),
        "threads": Bounded(ceiling="threads", default=2),
        "timeout_seconds": _wait(60.0),
    },
    "mysql": {"connect_seconds": _wait(10), "silence_seconds": _wait(900.0)},
    "postgres": {"connect_seconds": _wait(10), "silence_seconds": _wait(900.0)},
    "trino": {
        "client_timeout": _wait(300),
        "parallel": Bounded(ceiling="parallel", default=4),
        "request_timeout": _wait(30),
        "retry_seconds": _wait(60),
    },
}
"""Every numeric setting of a driver that costs memory, CPU, disk or time on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    memory_mb: int
    threads: int
    spill_mb: int
    buffer_mb: int
    parallel: int
    wait_seconds: int

    @classmethod
    def of(cls, settings: SourceSettings) -> Self:
        return cls(**{name: getattr(settings, f"source_{name}") for name in cls.__slots__})

    def check(self, kind: str, config: Mapping[str, object]) -> None:
        """Reject a configuration above a ceiling, naming the operator's setting."""
        for name, bounded in BOUNDED.get(kind, {}).items():
            value = _get(config, name)
            if value is not None and self._is_past(bounded, value):
                most = getattr(self, bounded.ceiling)
                raise InvalidInput(
                    f"{kind}: {name} is above the limit for sources: {str(value)[:40]}.",
                    hint=f"The operator's setting source_{bounded.ceiling} allows {most:,}.",
                    field=f"config.{name}",
                )

    def clamp(self, kind: str, config: Mapping[str, object]) -> dict[str, object]:
        """The configuration with every value, defaults included, within its ceiling."""
        clamped = dict(config)
        for name, bounded in BOUNDED.get(kind, {}).items():
            value = _get(clamped, name)
            if self._is_past(bounded, bounded.default if value is None else value):
                clamped = _put(clamped, name, self._most(bounded))
        return clamped

    def _is_past(self, bounded: Bounded, value: object) -> bool:
        """False for a value that is not a number; the driver rejects that."""
        amount = _amount(bounded, value)
        return amount is not None and amount > getattr(self, bounded.ceiling)

    def _most(self, bounded: Bounded) -> str | int:
        most: int = getattr(self, bounded.ceiling)
        return f"{most}MB" if bounded.unit is None else int(most / bounded.unit)


def _amount(bounded: Bounded, value: object) -> float | None:
    if bounded.unit is None:
        size = size_bytes(value) if isinstance(value, str) else None
        return None if size is None else size / _MB
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) * bounded.unit


def size_bytes(text: str) -> float | None:
    """`1GiB` in bytes; None if the text is not a size."""
    size = _SIZE.fullmatch(text)
    if size is None:
        return None
    base = 1024.0 if size["binary"] else 1000.0
    return float(size["number"]) * base ** (_PREFIXES.index(size["prefix"]) + 1)


def _get(config: Mapping[str, object], name: str) -> object:
    """A setting by its dotted name; None if it is not set."""
    outer, _, inner = name.partition(".")
    value = config.get(outer)
    if not inner:
        return value
    return value.get(inner) if isinstance(value, dict) else None


def _put(config: dict[str, object], name: str, value: object) -> dict[str, object]:
    outer, _, inner = name.partition(".")
    if not inner:
        return {**config, outer: value}
    before = config.get(outer)
    return {**config, outer: {**(before if isinstance(before, dict) else {}), inner: value}}
