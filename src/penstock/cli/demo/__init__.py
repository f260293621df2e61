"""`penstock demo`: a storm that loses no job, a bank that gives up its fraud rings, books that tie, a tidied lake.

Everything runs in a throw-away home folder, with the processes and the database that `penstock up` would start.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from penstock.cli.demo import books, lake, rings, storm, warehouse
from penstock.cli.home import Home
from penstock.cli.output import FAILED, emit, err
from penstock.client import Client
from penstock.client.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.cli.stack import Stack

Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON and nothing else.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    storm: storm.Story
    rings: rings.Rings
    books: books.Books
    lake: lake.Kept

    @property
    def good(self) -> bool:
        return self.storm.good and self.rings.good and self.books.good and self.lake.good


def demo(*, json: Json = False) -> int:
    """Storm the job engine, find the fraud rings in a bank's graph, hold invoices against payments, tidy a table."""
    from penstock.kit import logging

    logging.configure(level="ERROR", form="text")
    with _folder() as folder:
        played = asyncio.run(_play(Home(folder / "home"), quiet=json))
    emit(_document(played), as_json=json, render=lambda: _show(played))
    return 0 if played.good else FAILED


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    folder.chmod(0o755)  # as root the database runs under another account, which must get there
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _play(home: Home, *, quiet: bool) -> Played:
    from penstock.cli.stack import Stack

    def say(text: str) -> None:
        if not quiet:
            err.print(f"[dim]·[/dim] {text}")

    async with Stack(home, port=0, workers=3, say=say, environment=storm.HURRIED) as stack:
        return await asyncio.to_thread(_acts, stack, home, say, quiet=quiet)


def _acts(stack: Stack, home: Home, say: Callable[[str], None], *, quiet: bool) -> Played:
    token = home.secret("operator_token")
    with Session(stack.url, token) as http:
        story = storm.play(stack, http, say, quiet=quiet)
    file = home.folder / "warehouse" / "demo.duckdb"
    warehouse.build(file)
    with Client(stack.url, token) as ps:
        found = rings.find(ps, rings.prepare(ps, file), say, quiet=quiet)
        agreed = books.agree(ps, Path("penstock-demo.html").absolute(), say, quiet=quiet)
        kept = lake.keep(ps, token, say, quiet=quiet)
    return Played(storm=story, rings=found, books=agreed, lake=kept)


def _show(played: Played) -> None:
    storm.show(played.storm)
    rings.show(played.rings)
    books.show(played.books)
    lake.show(played.lake)


def _document(played: Played) -> dict[str, Any]:
    return {
        "storm": storm.document(played.storm),
        "rings": rings.document(played.rings),
        "books": books.document(played.books),
        "lake": lake.document(played.lake),
        "ok": played.good,
    }
