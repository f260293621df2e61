"""What the control plane asks of a parser process, and what the process answers, in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from penstock.kit.json_value import JsonObject


class Request(TypedDict, total=False):
    """`convert` writes the file as Parquet; `sample` its first rows that pass a side's filters."""

    task: Literal["convert", "sample"]
    file: str
    name: str
    encoding: str
    delimiter: str | None
    limits: dict[str, int]
    side: JsonObject
    rows: int


class Failure(TypedDict):
    """A `PenstockError` that the control plane raises again."""

    code: str
    message: str
    hint: str | None
    details: dict[str, object]


class ParserAnswer(TypedDict, total=False):
    rows: int
    columns: list[dict[str, str]]
    error: Failure
