"""`make test-cluster`: builds what is missing, then runs `inside.py` in namespaces of its own."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from tests.cluster import machine, parts
from tests.cluster.failures import ClusterFailed
from tests.servers.parts import LOCAL, REPOSITORY, SHARED, Missing
from tests.servers.process import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_KEPT_LOGS = LOCAL / "cluster-logs"
_say = Console(soft_wrap=True, highlight=False, markup=False, stderr=True).print


def main(arguments: Sequence[str]) -> int:
    if os.geteuid() != 0:
        _say("[cluster] This makes namespaces and runs containers: run it as root.")
        return 2
    started = time.monotonic()
    try:
        with _alone():
            parts.require()
            with machine.work_folder() as work:
                code = _run(work, arguments)
    except (ClusterFailed, Missing) as e:
        _say(f"[cluster] {e}")
        return 1
    _say(f"[cluster] {'passed' if code == 0 else 'failed'}: {time.monotonic() - started:.0f} s")
    return code


@contextmanager
def _alone() -> Iterator[None]:
    """One cluster at a time: what an earlier one left can then be removed without a doubt."""
    SHARED.mkdir(parents=True, exist_ok=True)
    with (SHARED / "cluster.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterFailed("another test cluster runs on this machine") from None
        yield


def _run(work: Path, arguments: Sequence[str]) -> int:
    command = [sys.executable, "-m", "tests.cluster.inside", str(work), *arguments]
    unshare = machine.isolated(command)
    done = subprocess.run(die_with_parent(unshare), cwd=REPOSITORY, check=False)
    if done.returncode != 0:
        shutil.rmtree(_KEPT_LOGS, ignore_errors=True)
        shutil.copytree(work / "logs", _KEPT_LOGS)
        _say(f"[cluster] the logs are in {_KEPT_LOGS}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
