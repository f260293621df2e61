"""`penstock demo`: a storm that loses no job, a bank that gives up its fraud rings, books that tie,
a tidied lake.

It plays in the home of `penstock up`, so that everything it made is there to explore afterwards.
Where that one runs already, it is used as it is, and only the storm, which kills workers, gets a
throw-away home.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.demo import books, lake, page, rings, setup, worker_kills
from penstock.cli.demo.result import Played
from penstock.cli.home import Home, default_home
from penstock.cli.output import FAILED, Json, emit, err, out
from penstock.client import Client
from penstock.kit.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.cli.stack import Stack

To = Annotated[Path, Parameter(name="--page", help="The HTML file to write.")]
PAGE = Path("penstock-demo.html")


def demo(*, to: To = PAGE, json: Json = False) -> int:
    """Stress-test the job engine, find fraud rings in a graph, reconcile invoices with payments,
    tidy a table."""
    from penstock.kit import logging

    logging.configure(level="ERROR", form="text")
    home = default_home()
    played = asyncio.run(_play(home, quiet=json))
    file = to.absolute()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page.written(played), encoding="utf-8")
    emit(_document(played, file, home), as_json=json, render=lambda: _show(played, file, home))
    return 0 if played.good else FAILED


async def _play(home: Home, *, quiet: bool) -> Played:
    from penstock.cli.stack import Stack

    def say(text: str) -> None:
        if not quiet:
            err.print(f"[dim]·[/dim] {text}")

    running, since = home.running(), datetime.now(UTC)
    with _stage(home, free=running is None) as stage:
        async with Stack(
            stage, port=0, workers=worker_kills.WORKERS, say=say, environment=worker_kills.HURRIED
        ) as stack:
            url = running.url if running else stack.url
            return await asyncio.to_thread(_acts, stack, url, home, since, say, quiet=quiet)


@contextmanager
def _stage(home: Home, *, free: bool) -> Iterator[Home]:
    if free:
        yield home
        return
    with scratch_folder("storm") as folder:
        folder.chmod(0o755)  # as root the database runs under another account, which must get there
        yield Home(folder / "home")


def _acts(
    stack: Stack, url: str, home: Home, since: datetime, say: Callable[[str], None], *, quiet: bool
) -> Played:
    started = time.monotonic()
    with Client(stack.url, stack.home.secret("operator_token")) as ps:
        story = worker_kills.play(stack, ps, since, say, quiet=quiet)
    token = home.secret("operator_token")
    with Client(url, token) as ps:
        put = setup.put(ps, home)
        circles = rings.find(ps, put.mapping_id, say, quiet=quiet)
        agreed = books.agree(ps, put.recipe_id, say, quiet=quiet)
        table = lake.keep(ps, token, say, quiet=quiet)
    return Played(
        storm=story, rings=circles, books=agreed, lake=table, seconds=time.monotonic() - started
    )


def _show(played: Played, file: Path, home: Home) -> None:
    worker_kills.show(played.storm)
    out.print()
    rings.show(played.rings)
    out.print()
    books.show(played.books)
    out.print()
    lake.show(played.lake)
    out.print()
    command = _command()
    first = "it runs already" if home.running() else f"{command} up --detach"
    for title, line in (
        ("Look at it", file.as_uri()),
        ("Explore it", first),
        ("", f"{command} instance start 1"),
        ("", f"{command} run list"),
        ("", f"{command} table health {lake.NAME}"),
        ("Your own CSV", "examples/notebooks/quickstart.ipynb"),
    ):
        out.print(f"[bold]{title:<14}[/bold]{line}", soft_wrap=True)


def _command() -> str:
    """What the reader types to call us."""
    return "penstock" if shutil.which("penstock") else os.path.relpath(sys.argv[0])


def _document(played: Played, file: Path, home: Home) -> dict[str, object]:
    return {
        "storm": worker_kills.document(played.storm),
        "rings": rings.document(played.rings),
        "books": books.document(played.books),
        "lake": lake.document(played.lake),
        "page": str(file),
        "home": str(home.folder),
        "seconds": round(played.seconds, 2),
        "ok": played.good,
    }
