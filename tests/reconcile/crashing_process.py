"""Workers and control planes that are killed by SIGKILL at a chosen step.

`python -m tests.reconcile.crashing_process` imports its libraries once, then runs the JSON commands
on its input: `start` forks a process and prints its id, `wait` and `stop` print its exit code.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import sys
from typing import Any

from penstock.reconcile.matching import handlers
from penstock.reconcile.matching.handlers import Matcher
from penstock.reconcile.runs.repository import Runs
from penstock.reconcile.staging.handlers import ChunkStager, StagePlanner
from penstock.wiring import control_plane
from penstock.wiring import settings as config
from penstock.wiring.worker import run_worker

QUEUES = ("stage", "match", "publish")
WORKER = {
    "a table is cut": (StagePlanner, "_add_chunks", "before"),
    "a chunk is about to be read": (ChunkStager, "_stage", "before"),
    "a chunk is written": (ChunkStager, "_stage", "after"),
    "the chunks are over": (StagePlanner, "_add_chunks", "after"),
    "a match begins": (Matcher, "_side_files", "before"),
    "some evidence is stored": (handlers, "_store_file", "after"),
    "the manifest is about to be written": (handlers, "_write_last", "before"),
    "the manifest is written": (handlers, "_write_last", "after"),
}
CONTROL_PLANE = {
    "a run is created": (Runs, "_stage", "before"),
    "the gate of staging opens": (Runs, "staged", "before"),
    "the match is queued but not committed": (Runs, "_match", "after"),
    "the match is queued": (Runs, "_notify", "before"),
    "a run is about to end": (Runs, "_end", "before"),
    "a run ended but it is not committed": (Runs, "_end", "after"),
}


def arm(owner: Any, name: str, when: str) -> None:
    original = getattr(owner, name)

    async def call_and_kill(*args: Any, **options: Any) -> None:
        if when == "after":
            await original(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    def kill(*args: Any, **options: Any) -> None:
        if when == "after":
            original(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, call_and_kill if inspect.iscoroutinefunction(original) else kill)


def serve(role: str, step: str | None, environment: dict[str, str]) -> int:
    os.environ.update(environment)
    if step is not None:
        arm(*(WORKER | CONTROL_PLANE)[step])
    settings = config.load()
    return (
        run_worker(settings, queues=list(QUEUES))
        if role == "worker"
        else control_plane.serve(settings)
    )


def run(command: dict[str, Any]) -> int:
    match command["do"]:
        case "start":
            pid = os.fork()
            if not pid:
                os._exit(serve(command["role"], command["step"], command["environment"]))
            return pid
        case "stop":
            os.kill(command["pid"], signal.SIGTERM)
    return os.waitstatus_to_exitcode(os.waitpid(command["pid"], 0)[1])


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(f"{run(json.loads(line))}\n")
        sys.stdout.flush()
