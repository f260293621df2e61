"""Becomes a program of somebody else's, confined.

    python -I -m penstock.graph_server.isolation.confined_program REACH PROGRAM…

REACH is JSON: the `parent` that the program dies with, and, unless it is not confined, `level` and
the paths to `read`, `run` and `write`. Such a program keeps unix sockets, for it serves on one. It
has to be started, so seccomp cannot take exec from it; of programs, Landlock leaves it its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path

from penstock.graph_server.isolation.permissions import Reach
from penstock.graph_server.isolation.seccomp import AF_UNIX, Filter, Socket

_SET_PDEATHSIG = 1
_CALLS = Filter(sockets=(Socket(family=AF_UNIX),), programs=True)


def main() -> None:
    order = json.loads(sys.argv[1])
    ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != order["parent"]:
        return
    if "write" in order:
        read, run, write = (list(map(Path, order[name])) for name in ("read", "run", "write"))
        calls = _CALLS if order["filters"] else None
        Reach(level=order["level"], read=read, run=run, write=write, calls=calls).confine()
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - no shell is needed


if __name__ == "__main__":
    main()
