"""`penstock export`: writes a query's rows as Parquet, without a control plane."""

from __future__ import annotations

import asyncio
import getpass
import os
import signal
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.output import REFUSED, USAGE, Json, complain, emit, err, out

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from rich.progress import Progress

    from penstock.cli.documents import Exported
    from penstock.cli.extraction import Extracted
    from penstock.cli.source_url import SourceUrl
    from penstock.sources.credentials import SourceCredentials
    from penstock.storage.object_store import StoreOptions

INTERRUPTED = 130


def export(
    sql: str,
    *,
    source: Annotated[
        str,
        Parameter(
            help="A URL (duckdb:, postgresql:, mysql:, trino:, s3:, gs:), a file or a folder."
        ),
    ],
    to: Annotated[str, Parameter(help="A folder, s3://bucket/prefix or gs://bucket/prefix.")],
    json: Json = False,
) -> int:
    """Write the rows of one SELECT as Parquet parts with a manifest.

    Passwords come from PENSTOCK_SOURCE_PASSWORD (or PGPASSWORD, MYSQL_PWD, TRINO_PASSWORD), else
    they are asked for.
    """
    try:
        from penstock.cli import source_url
        from penstock.kit import logging
        from penstock.sources.errors import SourceRefused
        from penstock.storage import parquet_sink  # noqa: F401 - whether it is there
    except ModuleNotFoundError as e:
        complain(
            f"An export needs {e.name}, which is not installed.", "pip install 'penstock[worker]'"
        )
        return USAGE
    logging.configure(level="ERROR", form="text")
    try:
        with _terminable():
            done = asyncio.run(
                _export(sql, _with_password(source_url.read(source)), to, quiet=json)
            )
    except KeyboardInterrupt:
        complain("Interrupted: the query was cancelled and nothing was left behind.")
        return INTERRUPTED
    except SourceRefused as e:
        complain(e.message, e.hint or "Set PENSTOCK_SOURCE_PASSWORD.")
        return REFUSED
    emit(_document(done), as_json=json, render=lambda: _print(done))
    return 0


async def _export(sql: str, source: SourceUrl, to: str, *, quiet: bool) -> Extracted:
    from penstock.cli.extraction import destination, extract

    opening = _opening(source)
    board = Board()
    async with destination(to, _options()) as store, opening.opened() as opened:
        with board.shown(quiet=quiet):
            return await extract(opened, sql, store, board)


def _with_password(source: SourceUrl) -> SourceUrl:
    """Prompt only when the source needs a password, none was set, and stdin is a terminal."""
    from penstock.sources.errors import SourceRefused

    if source.secrets or not source.takes_password or not sys.stdin.isatty():
        return source
    try:
        asyncio.run(_probe(source))
    except SourceRefused:
        return replace(source, secrets={"password": getpass.getpass()})
    return source


async def _probe(source: SourceUrl) -> None:
    async with _opening(source).opened() as opened:
        await opened.test()


def _opening(source: SourceUrl) -> SourceCredentials:
    """Whoever runs this command may reach whatever this machine does."""
    from penstock.kit.outbound import WITH_PRIVATE
    from penstock.sources.credentials import SourceCredentials

    return SourceCredentials(
        type=source.kind, config=source.config, secrets=source.secrets, outbound=WITH_PRIVATE
    )


@contextmanager
def _terminable() -> Iterator[None]:
    """A polite kill is answered as Ctrl-C is."""
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _options() -> StoreOptions:
    """What people set for the tools of their cloud."""
    from penstock.storage.object_store import StoreOptions

    endpoint = os.environ.get("AWS_ENDPOINT_URL") or None
    return StoreOptions(
        endpoint=endpoint,
        region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1",
        access_key_id=os.environ.get("AWS_ACCESS_KEY_ID") or None,
        secret_access_key=os.environ.get("AWS_SECRET_ACCESS_KEY") or None,
        session_token=os.environ.get("AWS_SESSION_TOKEN") or None,
        allow_http=bool(endpoint and endpoint.startswith("http://")),
        create_root=True,
    )


class Board:
    """Rows, megabytes and rows a second, on stderr and only for people."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._rows = self._size = 0
        self._progress: Progress = Progress(
            BarColumn(bar_width=30),
            TextColumn("{task.fields[says]}"),
            TimeElapsedColumn(),
            console=err,
            transient=True,
        )
        self._task = self._progress.add_task("export", total=None, says="planning")

    def shown(self, *, quiet: bool) -> AbstractContextManager[object]:
        return nullcontext() if quiet or not err.is_terminal else self._progress

    def planned(self, rows: int | None) -> None:
        self._progress.update(self._task, total=rows, says="reading")

    def read(self, rows: int, size: int) -> None:
        self._rows += rows
        self._size += size
        speed = self._rows / max(self._progress.tasks[0].elapsed or 0.0, 1e-3)
        says = f"{self._rows:,} rows  {self._size / 1e6:,.1f} MB  {speed:,.0f} rows/s"
        self._progress.update(self._task, completed=self._rows, says=says)


def _print(done: Extracted) -> None:
    rows, parts = done.written.rows, len(done.written.parts)
    out.print(
        f"[green]✓[/green] [bold]{rows:,}[/bold] rows, {done.written.size / 1e6:,.1f} MB in "
        f"{parts} part{'' if parts == 1 else 's'}, {done.seconds:.1f} s "
        f"({rows / max(done.seconds, 1e-3):,.0f} rows/s)"
    )
    out.print(done.manifest, markup=False, soft_wrap=True, style="dim")


def _document(done: Extracted) -> Exported:
    return {
        "place": done.place,
        "manifest": done.manifest,
        "rows": done.written.rows,
        "bytes": done.written.size,
        "parts": [
            {"path": part.path, "rows": part.rows, "bytes": part.size}
            for part in done.written.parts
        ],
        "columns": [
            {"name": column.name, "type": str(column.type)} for column in done.written.schema
        ],
        "seconds": round(done.seconds, 3),
        "rows_per_second": round(done.written.rows / max(done.seconds, 1e-3)),
    }
