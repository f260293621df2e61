"""What happened, as it was written down: by the storm itself, by the workers' handlers and logs, by
the database."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import asyncpg

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Attempt = tuple[int, str]


@dataclass(slots=True)
class History:
    """Everything the checker may look at."""

    accepted: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Jobs whose enqueue was acknowledged, with what they are meant to do."""
    cancelled: set[int] = field(default_factory=set)
    """Jobs whose cancel was acknowledged."""
    groups: dict[int, int] = field(default_factory=dict)
    """Groups opened, and how many members they began with."""
    effects: list[dict[str, Any]] = field(default_factory=list)
    """What handlers did: job_id, attempt_id, event, at."""
    verdicts: dict[Attempt, set[str]] = field(default_factory=dict)
    """What workers were told of their last writes."""
    stale: int = 0
    """Writes that a control plane refused."""
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    live: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    fired: list[dict[str, Any]] = field(default_factory=list)


class Journal:
    """The storm's own file; a line is written before anything else happens."""

    def __init__(self, path: Path) -> None:
        self._file: IO[str] = path.open("a", buffering=1)

    def note(self, event: str, **facts: Any) -> None:
        self._file.write(json.dumps({"event": event, **facts}) + "\n")

    def close(self) -> None:
        self._file.close()


async def read(folder: Path, dsn: str) -> History:
    history = History()
    for line in _lines(folder / "storm.jsonl"):
        match line["event"]:
            case "accepted":
                history.accepted[line["job_id"]] = line
            case "cancelled":
                history.cancelled.add(line["job_id"])
            case "group":
                history.groups[line["group_id"]] = line["members"]
    for file in sorted(folder.glob("effects-*.jsonl")):
        history.effects += _lines(file)
    for file in sorted(folder.glob("worker-*.log")):
        for line in _lines(file):
            if verdict := _verdict(line):
                history.verdicts.setdefault((line["job_id"], line["attempt_id"]), set()).add(
                    verdict
                )
    for file in sorted(folder.glob("plane-*.log")):
        history.stale += sum(line.get("event") == "stale_attempt" for line in _lines(file))
    await _read_tables(history, dsn)
    return history


async def _read_tables(history: History, dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        history.outcomes = await _table(connection, "outcome")
        history.attempts = await _table(connection, "attempt")
        history.live = await _table(connection, "live")
        history.jobs = await _table(connection, "job")
        history.fired = await _table(connection, "job_group")
    finally:
        await connection.close()


async def _table(connection: asyncpg.Connection[asyncpg.Record], name: str) -> list[dict[str, Any]]:
    rows = [dict(r) for r in await connection.fetch(f"SELECT * FROM penstock.{name}")]
    for row in rows:
        if row.get("attempt_id") is not None:
            row["attempt_id"] = str(row["attempt_id"])
    return rows


def _verdict(line: dict[str, Any]) -> str | None:
    """What a worker was told of the end that it wrote."""
    match line.get("event"), line.get("status"), line.get("verb"):
        case "job_ended", "succeeded" | "failed", _:
            return "done"
        case "stale_attempt", _, "finish":
            return "stale"
        case _:
            return None


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    """JSON lines; the last one of a killed process may be torn, and other text is not ours."""
    if not file.exists():
        return
    with file.open(errors="replace") as handle:
        for text in handle:
            if text.startswith("{") and text.endswith("}\n"):
                yield json.loads(text)
