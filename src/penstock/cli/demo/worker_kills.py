"""Act one of the demo: a worker is killed, another frozen past its lease and woken; no job is lost
or doubled.

What is printed at the end is read back from the database's history.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import TYPE_CHECKING, TypeVar

from rich.live import Live
from rich.progress_bar import ProgressBar

from penstock.cli.jobs import coloured
from penstock.cli.output import err, out
from penstock.cli.tabular import table
from penstock.client._sync.waiting import percent_and_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

    from penstock.cli.stack import Stack
    from penstock.client import Client
    from penstock.client.models import JobInfo

WORKERS = 3
JOBS = 18
STEPS = 8
STEP_SECONDS = 0.25
PATIENCE = 180.0
NEWEST = 100
"""How many probe jobs are looked at for ours."""
HURRIED = {"PENSTOCK_WORKER_SLOTS": "3", "PENSTOCK_REAP_SECONDS": "0.5"}
"""Few slots a worker, so that several hold jobs at once, and a quick reaper."""
T = TypeVar("T")


@dataclass(slots=True)
class Story:
    """What the demo did, and what became of it."""

    jobs: list[JobInfo] = field(default_factory=list)
    killed: str = ""
    killed_held: list[int] = field(default_factory=list)
    frozen: str = ""
    frozen_held: list[int] = field(default_factory=list)
    stale_refused: int = 0
    struck_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When one worker was killed and another frozen."""
    seconds: float = 0.0

    @property
    def ended_once(self) -> int:
        return sum(job.status == "succeeded" and _ends(job) == 1 for job in self.jobs)

    @property
    def good(self) -> bool:
        return self.ended_once == JOBS and bool(self.killed_held) and self.stale_refused > 0


def play(
    stack: Stack, ps: Client, since: datetime, say: Callable[[str], None], *, quiet: bool
) -> Story:
    """Once all workers that were started `since` then are there, so that none of them finds the
    jobs taken."""
    story, started = Story(), time.monotonic()
    _until(lambda: _here(ps, since), lambda count: count >= WORKERS)
    payload = {"steps": STEPS, "seconds_per_step": STEP_SECONDS}
    ids = [ps.jobs.create("probe", payload).id for _ in range(JOBS)]
    say(f"{JOBS} jobs enqueued")
    with Live(console=err, refresh_per_second=8, transient=True) as live:

        def look() -> list[JobInfo]:
            newest = (job.info for job in islice(ps.jobs.list(kind="probe"), NEWEST))
            jobs = sorted((job for job in newest if job.id in ids), key=lambda job: job.id)
            if not quiet:
                live.update(_board(jobs))
            return jobs

        jobs = _until(look, lambda rows: len(_holders(rows)) >= WORKERS)
        (story.killed, story.killed_held), (story.frozen, story.frozen_held) = list(
            _holders(jobs).items()
        )[:2]
        victim, sleeper = (stack.members[short(name)].pid for name in (story.killed, story.frozen))
        story.struck_at = datetime.now(UTC)
        os.kill(victim, SIGKILL)
        os.kill(sleeper, SIGSTOP)
        say(f"[red]kill -9[/red] {story.killed}, which held jobs {_listed(story.killed_held)}")
        say(f"[blue]froze[/blue] {story.frozen}, which held jobs {_listed(story.frozen_held)}")
        _until(look, lambda rows: all(job.status == "succeeded" for job in rows))
        os.kill(sleeper, SIGCONT)
        say(
            f"[blue]woke[/blue] {story.frozen}: its jobs are done by others, its own writes come "
            "too late"
        )
        story.stale_refused = _until(lambda: _stale(ps), lambda count: count > 0)
        story.jobs = [ps.jobs.get(job_id).info for job_id in ids]
    story.seconds = time.monotonic() - started
    return story


def _until(look: Callable[[], T], enough: Callable[[T], bool]) -> T:
    until = time.monotonic() + PATIENCE
    while not enough(value := look()):
        if time.monotonic() > until:
            raise TimeoutError(
                f"The demo waited {PATIENCE:g} s in vain; the logs are in its home folder."
            )
        time.sleep(0.1)
    return value


def _here(ps: Client, since: datetime) -> int:
    workers = ps.operations.workers()
    return sum(datetime.fromisoformat(worker["started_at"]) >= since for worker in workers)


def _holders(jobs: list[JobInfo]) -> dict[str, list[int]]:
    jobs_by_worker: dict[str, list[int]] = {}
    for job in jobs:
        if job.status == "running":
            jobs_by_worker.setdefault(job.worker or "", []).append(job.id)
    return jobs_by_worker


def _stale(ps: Client) -> int:
    text = ps.transport.content("GET", "/metrics", path={}).decode()
    lines = (line for line in text.splitlines() if line.startswith("penstock_stale_attempts_total"))
    return int(sum(float(line.rpartition(" ")[2]) for line in lines))


def _ends(job: JobInfo) -> int:
    return sum(attempt["how"] in ("succeeded", "failed") for attempt in job.attempts)


def _board(jobs: list[JobInfo]) -> Table:
    drawn = table("job", "status", "attempt", "worker", "progress")
    for job in jobs:
        percent, _ = percent_and_step(job.progress, "step", "")
        share = 100 if job.status == "succeeded" else percent
        bar = ProgressBar(total=100, completed=share, width=24)
        drawn.add_row(
            str(job.id), coloured(job.status), str(job.attempt_no), short(job.worker), bar
        )
    return drawn


def short(worker: str | None) -> str:
    """A worker's name without its machine."""
    return (worker or "").rpartition("/")[2]


def show(story: Story) -> None:
    title = "Jobs that needed more than one attempt"
    drawn = table("job", "attempt", "worker", "how it ended", "fence", title=title)
    for job in story.jobs:
        if len(job.attempts) > 1:
            for attempt in job.attempts:
                drawn.add_row(
                    str(job.id),
                    str(attempt["attempt_no"]),
                    short(attempt["worker"]),
                    coloured(attempt["how"]),
                    f"[dim]{attempt['attempt_id']}[/dim]",
                )
    out.print(drawn)
    mark = "[green]✓[/green]" if story.good else "[red]✗[/red]"
    out.print(
        f"\n{mark} [bold]{story.ended_once} of {JOBS}[/bold] jobs ended exactly once in "
        f"{story.seconds:.1f} s: {len(story.killed_held)} taken over from a killed worker, "
        f"{len(story.frozen_held)} from a frozen one, [bold]{story.stale_refused}[/bold] late "
        "writes refused by the fence."
    )


def _listed(ids: list[int]) -> str:
    return ", ".join(map(str, ids))


def document(story: Story) -> dict[str, object]:
    return {
        "jobs": JOBS,
        "ended_once": story.ended_once,
        "killed": {"worker": story.killed, "held": story.killed_held},
        "frozen": {"worker": story.frozen, "held": story.frozen_held},
        "stale_writes_refused": story.stale_refused,
        "seconds": round(story.seconds, 2),
        "ok": story.good,
    }
