from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from typing import Annotated

import pyarrow as pa
from pydantic import Field

from penstock.kit.errors import InvalidInput
from penstock.sources.ceilings import Size  # noqa: TC001 - pydantic reads it
from penstock.sources.config import secret

_TYPES = {
    "binary": pa.binary(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "double": pa.float64(),
    "float": pa.float32(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "string": pa.string(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
}
_DECIMAL = re.compile(r"decimal\((\d{1,2}), ?(\d{1,2})\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Csv:
    """The CSV format. Without a delimiter it is detected from each table's first file."""

    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    quote: Annotated[str, Field(min_length=1, max_length=1)] = '"'
    encoding: str = "utf-8"
    header: bool = True
    nulls: tuple[str, ...] = ("",)
    block_bytes: Annotated[int, Field(ge=64 * 1024, le=1024 * 1024 * 1024)] = 16 * 1024 * 1024
    """The size of the blocks that are parsed at once; a row must fit into one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The location of the files, and the metadata that they lack.

    `tables` maps a name to a pattern below the URL (`*` within a folder, `**` across folders);
    without it each file and each folder below the URL is a table. `types` sets the type of a CSV
    column, by table and column; other columns are text. `memory_limit`, `spill_limit` and
    `threads` apply to the DuckDB that runs queries which do more than select columns.
    """

    url: str
    tables: dict[str, str] = field(default_factory=dict)
    types: dict[str, dict[str, str]] = field(default_factory=dict)
    csv: Csv = field(default_factory=Csv)
    endpoint: str | None = None
    region: str = "us-east-1"
    allow_http: bool = False
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    retry_seconds: Annotated[float, Field(ge=0, le=3600)] = 60.0
    silence_seconds: Annotated[float, Field(gt=0)] = 900.0
    memory_limit: Size = "256MB"
    spill_limit: Size = "4GB"
    threads: Annotated[int, Field(ge=1, le=256)] = 2
    access_key_id: str | None = secret(None)
    secret_access_key: str | None = secret(None)
    session_token: str | None = secret(None)
    service_account: str | None = secret(None)
    bearer_token: str | None = secret(None)

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.csv.encoding)
        except LookupError:
            raise ValueError(f"there is no encoding {self.csv.encoding}") from None


def column_types(config: Config, table: str) -> dict[str, pa.DataType]:
    return {
        column: _type(name, table, column) for column, name in config.types.get(table, {}).items()
    }


def _type(name: str, table: str, column: str) -> pa.DataType:
    if decimal := _DECIMAL.fullmatch(name):
        precision, scale = map(int, decimal.groups())
        if 1 <= precision <= 38 and scale <= precision:
            return pa.decimal128(precision, scale)
    if name not in _TYPES:
        raise InvalidInput(
            f"files: types.{table}.{column}: there is no type {name}.",
            hint=f"Known: {', '.join(_TYPES)}, decimal(12,2).",
        )
    return _TYPES[name]
