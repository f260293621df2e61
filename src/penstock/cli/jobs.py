"""`penstock job`, `penstock queue`, `penstock drain`: over HTTP, like any other client."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

from penstock.cli.home import connect
from penstock.cli.output import FAILED, Json, emit, out, plain
from penstock.cli.tabular import table
from penstock.client.words import JobStatusFilter  # noqa: TC001 - the command line reads it

if TYPE_CHECKING:
    from penstock.cli.documents import Jobs, Queues
    from penstock.client import shapes
    from penstock.client._sync.jobs import Job

_COLOURS = {
    "queued": "yellow",
    "running": "cyan",
    "parked": "blue",
    "succeeded": "green",
    "failed": "red",
    "cancelled": "magenta",
}


def list_jobs(
    *,
    status: JobStatusFilter | None = None,
    kind: str | None = None,
    queue: str | None = None,
    offset: int = 0,
    limit: int = 50,
    json: Json = False,
) -> int:
    """List jobs, newest first."""
    query = {
        "status": status,
        "kind": kind,
        "queue": queue,
        "offset": offset,
        "limit": limit,
    }
    with connect() as ps:
        answer: Jobs = ps.transport.call("GET", "/api/jobs", query=query)
    emit(answer, as_json=json, render=lambda: _print_jobs(answer))
    return 0


def show(job_id: int, *, json: Json = False) -> int:
    """Show one job with its attempts."""
    with connect() as ps:
        job = ps.jobs.get(job_id)
    emit(job.data, as_json=json, render=lambda: _print_job(job))
    return 0


def tail(job_id: int, *, json: Json = False) -> int:
    """Follow a job until it is over; exit code 1 when it did not succeed."""
    events = []
    with connect() as ps:
        job = ps.jobs.get(job_id)
        for change in job.events():
            events.append(asdict(change))
            if not json:
                out.print(
                    f"{change.percent:>5.1f} %  {coloured(change.status)}  "
                    f"[dim]{plain(change.step)}[/dim]"
                )
    emit({"id": job.id, "status": job.status, "changes": events}, as_json=json, render=lambda: None)
    return 0 if job.status == "succeeded" else FAILED


def cancel(job_id: int, *, reason: str = "", json: Json = False) -> int:
    """End a job at once and for good."""
    path = {"job_id": job_id}
    with connect() as ps:
        answer: shapes.JobCancelled = ps.transport.call(
            "POST", "/api/jobs/{job_id}/cancel", path=path, json={"reason": reason}
        )["data"]
    emit(answer, as_json=json, render=lambda: out.print(f"Job {job_id} is cancelled."))
    return 0


def retry(job_id: int, *, json: Json = False) -> int:
    """Run a failed or cancelled job again, as a new job."""
    path = {"job_id": job_id}
    with connect() as ps:
        answer: shapes.JobEnqueued = ps.transport.call(
            "POST", "/api/jobs/{job_id}/retry", path=path
        )["data"]
    emit(
        answer,
        as_json=json,
        render=lambda: out.print(f"Job {answer['id']} does job {job_id} again."),
    )
    return 0


def queue(*, json: Json = False) -> int:
    """Show queues and their workers."""
    with connect() as ps:
        answer: Queues = {"queues": ps.operations.queues(), "workers": ps.operations.workers()}
    emit(answer, as_json=json, render=lambda: _print_queues(answer))
    return 0


def drain(
    switch: Literal["on", "off", "status"] = "status", *, reason: str = "", json: Json = False
) -> int:
    """Stop (on) or resume (off) taking new jobs; what is queued and what runs goes on."""
    with connect() as ps:
        answer = ps.operations.drain(None if switch == "status" else switch == "on", reason)
    words = "draining: no new jobs are taken" if answer["draining"] else "open: jobs are taken"
    emit(
        answer,
        as_json=json,
        render=lambda: out.print(f"The system is {words} (by {plain(answer['changed_by'])})."),
    )
    return 0


def coloured(status: str) -> str:
    return f"[{_COLOURS[status]}]{status}[/]" if status in _COLOURS else status


def _print_jobs(answer: Jobs) -> None:
    headings = ("id", "kind", "queue", "status", "attempt", "worker", "created")
    drawn = table(*headings, right=("id", "attempt"))
    for job in answer["data"]:
        attempt = f"{job['attempt_no']}/{job['max_attempts']}"
        status = coloured(job["status"])
        drawn.add_row(
            str(job["id"]),
            job["kind"],
            job["queue"],
            status,
            attempt,
            plain(job["worker"] or ""),
            job["created_at"][:19],
        )
    out.print(drawn)
    meta = answer["meta"]
    out.print(f"[dim]{len(answer['data'])} of {meta['total']:,}[/dim]")


def _print_job(job: Job) -> None:
    out.print(f"[bold]Job {job.id}[/bold]  {job.info.kind}  {coloured(job.status)}")
    for name in (
        "queue",
        "priority",
        "created_at",
        "created_by",
        "finished_at",
        "lock_key",
        "group_id",
        "retry_of",
    ):
        if job.data.get(name) is not None:
            out.print(f"  [dim]{name}[/dim] {plain(job.data[name])}", markup=True)
    for name in ("progress", "result", "error"):
        if job.data.get(name) is not None:
            out.print(f"  [dim]{name}[/dim]", end=" ")
            out.print(job.data[name], markup=False)
    drawn = table("attempt", "fence", "worker", "claimed", "ended", "how")
    for attempt in job.info.attempts:
        drawn.add_row(
            str(attempt["attempt_no"]),
            str(attempt["attempt_id"] or ""),
            attempt["worker"] or "",
            (attempt["claimed_at"] or "")[:23],
            (attempt["ended_at"] or "")[:23],
            coloured(attempt["how"]),
        )
    out.print(drawn)


def _print_queues(answer: Queues) -> None:
    numbers = ("ready", "running", "parked", "scheduled", "oldest wait")
    drawn = table("queue", *numbers, right=numbers)
    for row in answer["queues"]:
        wait = "" if row["oldest_wait"] is None else f"{row['oldest_wait']:.1f} s"
        counts = (row["ready"], row["running"], row["parked"], row["scheduled"])
        drawn.add_row(row["queue"], *(f"{count:,}" for count in counts), wait)
    out.print(drawn if answer["queues"] else "[dim]No job is waiting or running.[/dim]")
    for worker in answer["workers"]:
        queues = ", ".join(worker["queues"])
        out.print(
            f"[green]●[/green] {plain(worker['name'])}  {worker['running']}/{worker['slots']} "
            f"jobs  [dim]{queues}[/dim]"
        )
    if not answer["workers"]:
        out.print("[yellow]No worker has been seen in the last minutes.[/yellow]")
