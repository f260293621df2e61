"""A process that exceeds its limits, for the tests of these limits."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import orjson

from penstock.kit.limited_process import ANSWER, enter
from penstock.kit.memory import data_bytes


def main(folder: Path) -> None:
    request = enter(folder)
    if request["task"] == "write":
        write(folder)
        return
    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    pause = [sys.executable, "-c", "import signal; signal.pause()"]
    child = subprocess.Popen(pause, pass_fds=[lock])
    match request["task"]:
        case "wait":
            child.wait()
        case "spin":
            while data_bytes():
                pass
        case "allocate":
            bytearray(600 * 1024 * 1024)
        case _:
            os.abort()


def write(folder: Path) -> None:
    with (folder / "large").open("wb", buffering=0) as file:
        try:
            while file.write(bytes(600_000)):
                pass
        except OSError:
            written = file.tell()
    secrets = [name for name in os.environ if name.startswith("PENSTOCK")]
    (folder / ANSWER).write_bytes(orjson.dumps({"written": written, "environment": secrets}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
