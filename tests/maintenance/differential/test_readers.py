"""A reader that crashes is a reader that cannot read, and the next read has a new process."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.maintenance.differential.readers import (
    Rows,
    Unreadable,
    Worker,
    WorkerDied,
    WorkerReader,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEADLY = 13
CRASHING = f"""
import json, os, sys
print("ready", flush=True)
for line in sys.stdin:
    reads = json.loads(line)["reads"]
    if {DEADLY} in reads:
        os.abort()
    print(json.dumps({{"answer": [{{"types": [], "rows": [str(r)]}} for r in reads]}}), flush=True)
"""
"""A reader whose process dies of one read, in the middle of the others."""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    with _started(tmp_path, CRASHING) as running:
        yield running


@contextmanager
def _started(folder: Path, script: str) -> Iterator[Worker]:
    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )

    with Worker(start, folder / "log") as worker:
        worker.wait_until_ready()
        yield worker


def _rows(read: int) -> Rows:
    return Rows(types=(), rows=(str(read),))


def test_only_the_read_that_kills_the_process_is_unreadable(worker: Worker) -> None:
    reader = WorkerReader("crashing", worker, reads_refs=False)
    first, second, third = reader.start("file:///m", [1, DEADLY, 2])()
    assert (first, third) == (_rows(1), _rows(2))
    assert isinstance(second, Unreadable)
    assert "died" in second.reason


def test_after_a_death_the_next_request_has_a_new_process(worker: Worker) -> None:
    reader = WorkerReader("crashing", worker, reads_refs=False)
    reader.start("file:///m", [DEADLY])()
    assert reader.start("file:///m", [4])() == [_rows(4)]


def test_requests_that_a_dead_process_did_not_answer_say_so(worker: Worker) -> None:
    answered = worker.send(do="read", reads=[1])
    deadly = worker.send(do="read", reads=[DEADLY])
    assert answered() == [{"types": [], "rows": ["1"]}]
    with pytest.raises(WorkerDied):
        deadly()
    unanswered = worker.send(do="read", reads=[2])
    assert unanswered() == [{"types": [], "rows": ["2"]}]
