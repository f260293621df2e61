"""Workers and control planes that die by SIGKILL at the step they are told.

`python -m tests.reconcile.victim` imports all it needs once, then obeys the JSON lines on its
input: `start` forks one and answers with its process id, `wait` and `stop` answer with how it
ended.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import sys
from typing import Any

from penstock.kit import config
from penstock.reconcile.matching import handlers
from penstock.reconcile.matching.handlers import Matcher
from penstock.reconcile.runs.repository import Runs
from penstock.reconcile.staging.handlers import ChunkStager, StagePlanner
from penstock.wiring import control_plane
from penstock.wiring.worker import run_worker

QUEUES = ("stage", "match", "publish")
WORKER = {
    "a table is cut": (StagePlanner, "_go_on", "before"),
    "a chunk is about to be read": (ChunkStager, "_stage", "before"),
    "a chunk is written": (ChunkStager, "_stage", "after"),
    "the chunks are over": (StagePlanner, "_go_on", "after"),
    "a match begins": (Matcher, "_taken", "before"),
    "some evidence is stored": (handlers, "_store_file", "after"),
    "the manifest is about to be written": (handlers, "_write_last", "before"),
    "the manifest is written": (handlers, "_write_last", "after"),
}
PLANE = {
    "a run is asked for": (Runs, "_stage", "before"),
    "the gate of staging opens": (Runs, "staged", "before"),
    "the match is queued but not committed": (Runs, "_match", "after"),
    "the match is queued": (Runs, "_ring", "before"),
    "a run is about to end": (Runs, "_end", "before"),
    "a run ended but it is not committed": (Runs, "_end", "after"),
}


def arm(owner: Any, name: str, when: str) -> None:
    original = getattr(owner, name)

    async def then_die(*given: Any, **options: Any) -> None:
        if when == "after":
            await original(*given, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    def die(*given: Any, **options: Any) -> None:
        if when == "after":
            original(*given, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, then_die if inspect.iscoroutinefunction(original) else die)


def live(role: str, step: str | None, environment: dict[str, str]) -> int:
    os.environ.update(environment)
    if step is not None:
        arm(*(WORKER | PLANE)[step])
    told = config.load()
    return run_worker(told, queues=list(QUEUES)) if role == "worker" else control_plane.serve(told)


def obey(order: dict[str, Any]) -> int:
    match order["do"]:
        case "start":
            pid = os.fork()
            if not pid:
                os._exit(live(order["role"], order["step"], order["environment"]))
            return pid
        case "stop":
            os.kill(order["pid"], signal.SIGTERM)
    return os.waitstatus_to_exitcode(os.waitpid(order["pid"], 0)[1])


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(f"{obey(json.loads(line))}\n")
        sys.stdout.flush()
