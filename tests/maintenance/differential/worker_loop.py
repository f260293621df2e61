"""The serving side of a reader that runs in an environment of its own: a JSON line in, one out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tests.maintenance.differential.canonical import canonical_rows, canonical_types

if TYPE_CHECKING:
    import pyarrow as pa

Request: TypeAlias = Mapping[str, object]
Handler: TypeAlias = Callable[[Request], object]
Read: TypeAlias = int | str | None
"""A snapshot, a branch or tag, or the table as it is."""
MOST_ERROR = 300


def serve(handlers: Mapping[str, Handler]) -> None:
    """Answers until standard input ends. Prints of libraries go to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"answer": handlers[request["do"]](request)}
        except Exception as e:
            answer = {"error": error_text(e)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def error_text(error: BaseException) -> str:
    """What went wrong in one line; of a Java error that which caused the others."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return f"{type(error).__name__}: {(causes or lines)[-1 if causes else 0][:MOST_ERROR]}"


def answer_of(table: pa.Table, schema: Mapping[str, object] | None) -> dict[str, object]:
    return {"types": canonical_types(table), "rows": canonical_rows(table, schema)}


class Metadata:
    """What a reader needs to know of a metadata file."""

    def __init__(self, file: str) -> None:
        self._metadata = json.loads(Path(file.removeprefix("file://")).read_text())
        self._schemas = {schema["schema-id"]: schema for schema in self._metadata["schemas"]}
        self._snapshots = {s["snapshot-id"]: s for s in self._metadata["snapshots"]}

    def schema(self, read: Read) -> Mapping[str, object] | None:
        """The Iceberg schema that a read has. Engines differ about that of a branch: None."""
        current = self._metadata["current-schema-id"]
        if isinstance(read, str):
            return None
        if read is None:
            return self._schemas[current]
        return self._schemas[self._snapshots[read].get("schema-id", current)]

    def kind_of_ref(self, name: str) -> str:
        return str(self._metadata["refs"][name]["type"])
