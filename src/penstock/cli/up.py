"""`penstock up`, `down`, `status`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from functools import partial
from signal import SIGINT, SIGTERM
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.home import Home, Running, connect, default_home
from penstock.cli.output import FAILED, UNAVAILABLE, Json, complain, emit, err, out, patience
from penstock.client.errors import ClientError

if TYPE_CHECKING:
    from penstock.cli.documents import Status, Up

_STOP_SECONDS = 60.0


def up(
    *,
    port: Annotated[int, Parameter(help="Port of the control plane; 0 picks a free one.")] = 8080,
    workers: Annotated[int, Parameter(help="Worker processes to run.")] = 1,
    detach: Annotated[bool, Parameter(negative="", help="Return when everything runs.")] = False,
    demo: Annotated[
        bool, Parameter(help="Put a demo warehouse and a mapping of it into a new home.")
    ] = True,
    login_link: Annotated[
        bool, Parameter(help="Print a link that signs a browser in, once.")
    ] = True,
    json: Json = False,
) -> int:
    """Start everything on this machine: PostgreSQL, control plane, workers."""
    home = default_home()
    if detach:
        return _up_detached(home, port, workers, demo=demo, login_link=login_link, json=json)
    return asyncio.run(_up(home, port, workers, demo=demo, login_link=login_link, json=json))


def down(*, json: Json = False) -> int:
    """Stop what `up` started."""
    home = default_home()
    running = home.running()
    if running is None:
        emit({"stopped": False}, as_json=json, render=lambda: out.print("Nothing runs here."))
        return 0
    os.kill(running.pid, SIGTERM)
    until = time.monotonic() + _STOP_SECONDS
    with patience("Handing jobs back and stopping"):
        while running.alive:
            if time.monotonic() > until:
                complain(
                    f"Process {running.pid} does not stop.",
                    f"kill -9 {running.pid}; nothing committed is lost.",
                )
                return FAILED
            time.sleep(0.05)
    emit({"stopped": True, "pid": running.pid}, as_json=json, render=lambda: out.print("Stopped."))
    return 0


def status(*, json: Json = False) -> int:
    """Show what runs here; exit code 5 when nothing does."""
    try:
        with connect() as ps:
            document: Status = {
                "url": ps.url,
                "ready": ps.ready(),
                "queues": ps.operations.queues(),
                "workers": ps.operations.workers(),
                "drain": ps.operations.drain(),
            }
    except ClientError as e:
        if e.code != "UNREACHABLE":
            raise
        emit({"url": None}, as_json=json, render=partial(complain, e.message, e.hint))
        return UNAVAILABLE
    emit(document, as_json=json, render=lambda: _print_status(document))
    return 0


async def _up(
    home: Home, port: int, workers: int, *, demo: bool, login_link: bool, json: bool
) -> int:
    from penstock.cli.stack import Stack
    from penstock.kit import logging

    logging.configure(level="WARNING", form="text")
    stop = asyncio.Event()
    for signal in (SIGINT, SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal, stop.set)
    started = time.monotonic()
    stack = Stack(
        home,
        port=port,
        workers=workers,
        say=lambda what: err.print(f"[dim]·[/dim] {what}"),
        furnish=partial(_furnish, home) if demo else None,
    )
    async with stack:
        seconds = time.monotonic() - started
        document = await asyncio.to_thread(_document, home, stack.running, login_link=login_link)
        emit(document, as_json=json, render=lambda: _print_up(document, seconds))
        sys.stdout.flush()
        await stop.wait()
        err.print("[dim]· stopping[/dim]")
    return 0


def _document(home: Home, running: Running, *, login_link: bool) -> Up:
    document: Up = {
        "home": str(home.folder),
        "pid": running.pid,
        "url": running.url,
        "started_at": running.started_at,
        "database": running.database,
    }
    if login_link:
        document["login_url"] = _login_url(home, running)
    return document


def _login_url(home: Home, running: Running) -> str:
    from penstock.cli.login import login_link
    from penstock.client import Client

    with Client(running.url, home.secret("operator_token")) as ps:
        return login_link(ps)["url"]


def _print_up(document: Up, seconds: float) -> None:
    url, folder = document["url"], document["home"]
    out.print(f"[green]●[/green] Penstock runs at [bold]{url}[/bold]  [dim]{seconds:.1f} s[/dim]")
    out.print(
        f"  [dim]home[/dim]   {folder}\n  [dim]look[/dim]   penstock status · penstock job list"
    )
    _print_login(document)
    out.print("  [dim]stop[/dim]   Ctrl-C, or penstock down")


def _print_login(document: Up) -> None:
    if "login_url" in document:
        out.print("  [dim]open[/dim]   in a browser, once:", document["login_url"], soft_wrap=True)


def _furnish(home: Home, url: str) -> None:
    """Once in a home's life: a warehouse to explore."""
    from penstock.cli.demo import setup
    from penstock.client import Client

    if setup.stands(home):
        return
    try:
        with Client(url, home.secret("operator_token")) as ps:
            put = setup.put(ps, home)
    except (ClientError, OSError) as e:
        err.print(f"[yellow]·[/yellow] no demo warehouse: {e}", markup=True)
    else:
        err.print(f"[dim]·[/dim] demo warehouse: mapping {put.mapping_id}, recipe {put.recipe_id}")


def _up_detached(
    home: Home, port: int, workers: int, *, demo: bool, login_link: bool, json: bool
) -> int:
    if running := home.running():
        words = f"[green]●[/green] Penstock runs already at [bold]{running.url}[/bold]"
        return _say_it_runs(home, running, words, login_link=login_link, json=json)
    home.make()
    with (home.logs / "up.log").open("ab") as log:
        command = [
            sys.executable,
            "-m",
            "penstock.cli",
            "up",
            "--port",
            str(port),
            "--workers",
            str(workers),
        ]
        command += ["--demo" if demo else "--no-demo", "--no-login-link"]
        child = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    with patience("Starting PostgreSQL, the control plane and workers"):
        while (running := _started(home, child.pid)) is None:
            if child.poll() is not None:
                complain("It did not start.", f"Its log: {home.logs / 'up.log'}")
                return FAILED
            time.sleep(0.05)
    words = (
        f"[green]●[/green] Penstock runs at [bold]{running.url}[/bold] [dim](process "
        f"{running.pid})[/dim]"
    )
    return _say_it_runs(home, running, words, login_link=login_link, json=json)


def _say_it_runs(home: Home, running: Running, words: str, *, login_link: bool, json: bool) -> int:
    document = _document(home, running, login_link=login_link)

    def render() -> None:
        out.print(words)
        _print_login(document)

    emit(document, as_json=json, render=render)
    return 0


def _started(home: Home, pid: int) -> Running | None:
    running = home.running()
    return running if running and running.pid == pid else None


def _print_status(document: Status) -> None:
    out.print(f"[green]●[/green] {document['url']}")
    waiting = sum(row["ready"] for row in document["queues"])
    active = sum(row["running"] for row in document["queues"])
    out.print(f"  {waiting:,} jobs wait, {active:,} run, {len(document['workers'])} workers")
    if document["drain"]["draining"]:
        out.print(
            f"  [yellow]draining[/yellow] since {document['drain']['changed_at']} by "
            f"{document['drain']['changed_by']}"
        )
