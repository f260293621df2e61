"""`penstock job`, `penstock queue`, `penstock drain`: over HTTP, like any other client."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from rich.table import Table

from penstock.cli.home import connect, session
from penstock.cli.output import FAILED, Json, emit, out, plain
from penstock.client.words import JobStatusFilter  # noqa: TC001 - the command line reads it

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
    with session() as http:
        answer = http.call(
            "GET", "/api/jobs", status=status, kind=kind, queue=queue, offset=offset, limit=limit
        )
    emit(answer, as_json=json, render=lambda: _print_jobs(answer))
    return 0


def show(job_id: int, *, json: Json = False) -> int:
    """Show one job with its attempts."""
    with session() as http:
        document = http.call("GET", f"/api/jobs/{job_id}")["data"]
    emit(document, as_json=json, render=lambda: _print_job(document))
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
    with session() as http:
        answer = http.call("POST", f"/api/jobs/{job_id}/cancel", json={"reason": reason})["data"]
    emit(answer, as_json=json, render=lambda: out.print(f"Job {job_id} is cancelled."))
    return 0


def retry(job_id: int, *, json: Json = False) -> int:
    """Run a failed or cancelled job again, as a new job."""
    with session() as http:
        answer = http.call("POST", f"/api/jobs/{job_id}/retry")["data"]
    emit(
        answer,
        as_json=json,
        render=lambda: out.print(f"Job {answer['id']} does job {job_id} again."),
    )
    return 0


def queue(*, json: Json = False) -> int:
    """Show queues and their workers."""
    with session() as http:
        answer = {
            "queues": http.call("GET", "/api/queues")["data"],
            "workers": http.call("GET", "/api/workers")["data"],
        }
    emit(answer, as_json=json, render=lambda: _print_queues(answer))
    return 0


def drain(
    switch: Literal["on", "off", "status"] = "status", *, reason: str = "", json: Json = False
) -> int:
    """Stop (on) or resume (off) taking new jobs; what is queued and what runs goes on."""
    with session() as http:
        if switch == "status":
            answer = http.call("GET", "/api/drain")["data"]
        else:
            answer = http.call(
                "PUT", "/api/drain", json={"draining": switch == "on", "reason": reason}
            )["data"]
    words = "draining: no new jobs are taken" if answer["draining"] else "open: jobs are taken"
    emit(
        answer,
        as_json=json,
        render=lambda: out.print(f"The system is {words} (by {plain(answer['changed_by'])})."),
    )
    return 0


def coloured(status: str) -> str:
    return f"[{_COLOURS[status]}]{status}[/]" if status in _COLOURS else status


def _print_jobs(answer: dict[str, Any]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("id", "kind", "queue", "status", "attempt", "worker", "created"):
        table.add_column(heading, justify="right" if heading in ("id", "attempt") else "left")
    for job in answer["data"]:
        attempt = f"{job['attempt_no']}/{job['max_attempts']}"
        status = coloured(job["status"])
        table.add_row(
            str(job["id"]),
            job["kind"],
            job["queue"],
            status,
            attempt,
            plain(job["worker"] or ""),
            job["created_at"][:19],
        )
    out.print(table)
    meta = answer["meta"]
    out.print(f"[dim]{len(answer['data'])} of {meta['total']:,}[/dim]")


def _print_job(job: dict[str, Any]) -> None:
    out.print(f"[bold]Job {job['id']}[/bold]  {job['kind']}  {coloured(job['status'])}")
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
        if job.get(name) is not None:
            out.print(f"  [dim]{name}[/dim] {plain(job[name])}", markup=True)
    for name in ("progress", "result", "error"):
        if job.get(name) is not None:
            out.print(f"  [dim]{name}[/dim]", end=" ")
            out.print(job[name], markup=False)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("attempt", "fence", "worker", "claimed", "ended", "how"):
        table.add_column(heading)
    for attempt in job["attempts"]:
        table.add_row(
            str(attempt["attempt_no"]),
            str(attempt["attempt_id"] or ""),
            attempt["worker"] or "",
            (attempt["claimed_at"] or "")[:23],
            (attempt["ended_at"] or "")[:23],
            coloured(attempt["how"]),
        )
    out.print(table)


def _print_queues(answer: dict[str, Any]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("queue", "ready", "running", "parked", "scheduled", "oldest wait"):
        table.add_column(heading, justify="left" if heading == "queue" else "right")
    for row in answer["queues"]:
        wait = "" if row["oldest_wait"] is None else f"{row['oldest_wait']:.1f} s"
        counts = [f"{row[name]:,}" for name in ("ready", "running", "parked", "scheduled")]
        table.add_row(row["queue"], *counts, wait)
    out.print(table if answer["queues"] else "[dim]No job is waiting or running.[/dim]")
    for worker in answer["workers"]:
        queues = ", ".join(worker["queues"])
        out.print(
            f"[green]●[/green] {plain(worker['name'])}  {worker['running']}/{worker['slots']} "
            f"jobs  [dim]{queues}[/dim]"
        )
    if not answer["workers"]:
        out.print("[yellow]No worker has been seen in the last minutes.[/yellow]")
