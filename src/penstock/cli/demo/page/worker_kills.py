"""The page's fourth section: every attempt of every job, and the writes that the fence refused."""

from __future__ import annotations

from datetime import datetime
from html import escape
from typing import TYPE_CHECKING

from penstock.cli.demo.page import charts
from penstock.cli.demo.page.charts import Span
from penstock.cli.demo.page.markup import cell, number, section, table
from penstock.cli.demo.worker_kills import short

if TYPE_CHECKING:
    from penstock.cli.demo.worker_kills import Story
    from penstock.client.shapes import Attempt


def storm_section(story: Story) -> str:
    start = min(
        (_moment(attempt["claimed_at"]) for job in story.jobs for attempt in job.attempts),
        default=story.struck_at,
    )
    rows = [
        (f"job {job.id}", [_span(story, start, attempt) for attempt in job.attempts])
        for job in story.jobs
    ]
    struck = (story.struck_at - start).total_seconds()
    keys = (
        ("good", "ended the job"),
        ("bad", "worker killed with SIGKILL"),
        ("violet", "worker frozen past its lease"),
    )
    legend = "".join(
        f'<span class="{kind}"><i class="key"></i>{escape(text)}</span>' for kind, text in keys
    )
    again = [
        (
            cell(str(job.id)),
            number(attempt["attempt_no"]),
            cell(short(attempt["worker"])),
            cell(attempt["how"]),
            f'<td class="mono">{escape(str(attempt["attempt_id"]))}</td>',
        )
        for job in story.jobs
        if len(job.attempts) > 1
        for attempt in job.attempts
    ]
    return section(
        "storm",
        "No job lost, none done twice",
        "Of three workers one was killed and one frozen until its leases had lapsed, then woken. "
        f"All {len(story.jobs)} jobs ended exactly once. The woken worker still tried to end its "
        f"jobs: {story.stale_refused} late writes were refused, because each claim draws a new "
        "random fence and only its holder may write.",
        charts.timeline(rows, [(struck, "killed, frozen")]),
        f'<p class="keys">{legend}</p>',
        "<h3>Jobs that needed more than one attempt</h3>",
        table(("job", "attempt", "worker", "how it ended", "fence"), again),
    )


def _span(story: Story, start: datetime, attempt: Attempt) -> Span:
    kind = (
        "good"
        if attempt["how"] == "succeeded"
        else {story.killed: "bad", story.frozen: "violet"}.get(attempt["worker"] or "", "ghost")
    )
    claimed, ended = _moment(attempt["claimed_at"]), _moment(attempt["ended_at"])
    title = f"attempt {attempt['attempt_no']} by {short(attempt['worker'])}: {attempt['how']}"
    return Span(
        start=(claimed - start).total_seconds(),
        end=(ended - start).total_seconds(),
        kind=kind,
        title=title,
    )


def _moment(text: str | None) -> datetime:
    if text is None:
        raise ValueError("An attempt that has ended was claimed and has an end.")
    return datetime.fromisoformat(text)
