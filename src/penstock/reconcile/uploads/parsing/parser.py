"""Starts a parser process per file from the control plane, and turns its exit into a result or
error."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import orjson

from penstock.kit import limited_process, logging
from penstock.kit.concurrency_limit import ConcurrencyLimit
from penstock.kit.errors import InvalidInput, PayloadTooLarge, PenstockError, rebuild
from penstock.kit.limited_process import ProcessLimits, ProcessStopped
from penstock.reconcile.uploads.parsing.limits import MB, TableLimits
from penstock.reconcile.uploads.tabular import ROWS_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.reconcile.recipes.model import Side
    from penstock.reconcile.settings import UploadSettings
    from penstock.reconcile.uploads.parsing.messages import ParserAnswer, Request
    from penstock.reconcile.uploads.tabular import Reading

log = logging.get(__name__)
MODULE = "penstock.reconcile.uploads.parsing"
SAMPLE_FILE = "sample.arrow"
_SPLIT = "Split the file, or ask the operator to raise {}."


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFile:
    """The Parquet file written from an upload."""

    path: Path
    rows: int
    columns: Sequence[dict[str, str]]


class Parser:
    """At most `parallel` processes at once; the others wait. One user's files leave a process to
    others, where there is more than one."""

    def __init__(self, limits: ProcessLimits, table: TableLimits, *, parallel: int) -> None:
        self._limits = limits
        self._table = table
        self._turns = ConcurrencyLimit(
            total=parallel, per_user=max(1, parallel - 1), patience=None, subject="files"
        )

    @classmethod
    def of(cls, settings: UploadSettings) -> Parser:
        limits = ProcessLimits(
            memory_bytes=settings.upload_memory_mb * MB,
            cpu_seconds=settings.upload_cpu_seconds,
            wall_seconds=settings.upload_seconds,
            file_bytes=settings.upload_unpacked_mb * MB,
        )
        return cls(limits, TableLimits.of(settings), parallel=settings.upload_parallel)

    async def convert(
        self, source: Path, reading: Reading, folder: Path, *, username: str
    ) -> ParsedFile:
        """Convert the file to Parquet in the folder."""
        request: Request = {
            "task": "convert",
            "file": str(source),
            "name": reading.name,
            "encoding": reading.encoding,
            "delimiter": reading.delimiter,
            "limits": asdict(self._table),
        }
        answer = await self._run(request, folder, username)
        return ParsedFile(path=folder / ROWS_FILE, rows=answer["rows"], columns=answer["columns"])

    async def sample(
        self, stored: Path, side: Side, rows: int, folder: Path, *, username: str
    ) -> Path:
        """The first rows that pass the side's filters, as an Arrow file."""
        request: Request = {
            "task": "sample",
            "file": str(stored),
            "side": side.model_dump(mode="json", exclude_unset=True),
            "rows": rows,
        }
        await self._run(request, folder, username)
        return folder / SAMPLE_FILE

    async def _run(self, request: Request, folder: Path, username: str) -> ParserAnswer:
        async with self._turns.slot(username):
            try:
                data = await limited_process.run(MODULE, request, folder, self._limits)
            except ProcessStopped as e:
                log.warning("upload_parser_stopped", reason=e.reason, errors=e.errors)
                raise self._explain(e) from None
        answer: ParserAnswer = orjson.loads(data)
        if error := answer.get("error"):
            raise rebuild(
                error["code"], error["message"], hint=error["hint"], details=error["details"]
            )
        return answer

    def _explain(self, stopped: ProcessStopped) -> PenstockError:
        match stopped.reason:
            case "time":
                return PayloadTooLarge(
                    f"The file takes longer to read than {self._limits.cpu_seconds:,} s of one"
                    f" processor or {self._limits.wall_seconds:,} s in all.",
                    hint=_SPLIT.format("upload_cpu_seconds and upload_seconds"),
                )
            case "memory":
                megabytes = self._limits.memory_bytes // MB
                return PayloadTooLarge(
                    f"The file takes more than {megabytes:,} MB of memory to read.",
                    hint=_SPLIT.format("upload_memory_mb"),
                    limit=megabytes,
                )
            case "crash":
                return InvalidInput(
                    "The file cannot be read: the parser process crashed.",
                    hint="Save it again with another program, or as .csv.",
                )
