"""A process that has imported everything once and forks workers and control planes in milliseconds.

It speaks JSON lines: `{"id": 1, "role": "worker", "environment": {…}, "log": "…"}` on stdin,
`{"id": 1, "pid": 77}` and later `{"exited": 77, "status": …}` on stdout. The forked children are
ordinary processes of their own.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import traceback


def main() -> None:
    from penstock.wiring import settings as config
    from tests.chaos import control_plane, worker_process

    roles = {"worker": worker_process.run, "plane": control_plane.run}
    wakeup, poke = os.pipe()
    os.set_blocking(poke, False)
    signal.set_wakeup_fd(poke)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for line in _lines(wakeup):
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(roles[order["role"]], order, config)
        _say({"id": order["id"], "pid": pid})


def _lines(wakeup: int):  # type: ignore[no-untyped-def]
    """Orders from stdin; between them, the ends of children are told."""
    buffer = b""
    while True:
        ready, _, _ = select.select([0, wakeup], [], [])
        if wakeup in ready:
            os.read(wakeup, 512)
            _reap()
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                return
            *lines, buffer = (buffer + data).split(b"\n")
            yield from lines


def _reap() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _say({"exited": pid, "code": os.waitstatus_to_exitcode(status)})


def _become(run, order, config) -> None:  # type: ignore[no-untyped-def]
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(order["environment"])
    code = 70
    try:
        code = run(config.load())
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _say(value: object) -> None:
    os.write(1, json.dumps(value).encode() + b"\n")


if __name__ == "__main__":
    main()
