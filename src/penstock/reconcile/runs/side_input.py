"""What a run reads of each side, as the run's row and the payload of its match carry it in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from penstock.kit.json_value import JsonObject


class StoredFile(TypedDict):
    """A Parquet file in the object store."""

    key: str
    rows: int
    size: int
    sha256: str


class SideInput(TypedDict, total=False):
    """`files` of an upload or of staging; of a source, what to read of it.

    A source is staged first, unless it is `native`: then the match reads it in place. `lent` means
    that the recipe gave the right to read it.
    """

    files: list[StoredFile]
    rows: int
    upload: str
    data_source_id: int
    document: JsonObject
    lent: bool
    native: bool
    staging: JsonObject
    snapshot: str | None
    chunks: int


def to_stage(source: SideInput) -> bool:
    return "files" not in source and not source.get("native", False)


def as_requested(source: SideInput) -> SideInput:
    """A side's input as it was requested, without the results of staging."""
    requested = source.copy()
    if "data_source_id" in source:
        requested.pop("files", None)
        requested.pop("rows", None)
        requested.pop("snapshot", None)
        requested.pop("chunks", None)
    return requested
