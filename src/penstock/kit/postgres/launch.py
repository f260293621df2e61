"""Becomes the server: drops root, dies with its parent, then execs.

Run by its path in an isolated interpreter (`python -I -S launch.py`), so it imports nothing of
ours. A `preexec_fn` would do the same, but is unsafe in a process with threads. The order matters:
a change of user clears the death signal.
"""

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1


def _die_with(parent: int, signal: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal)
    if os.getppid() != parent:
        sys.exit("the process that wanted this server is gone")


def main(uid: str, gid: str, parent: str, death_signal: str, *command: str) -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(int(gid))
        os.setuid(int(uid))
    _die_with(int(parent), int(death_signal))
    os.umask(0o077)
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(*sys.argv[1:])
