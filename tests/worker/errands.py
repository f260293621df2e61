"""What children are sent to do; it imports little, for each child imports it anew."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from penstock.kit.errors import InvalidInput


def brood(seconds: float, file: str) -> str:
    """Leaves its own pid and that of a grandchild behind."""
    grandchild = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", str(seconds))
    Path(file).write_text(f"{os.getpid()} {grandchild}")
    time.sleep(seconds)
    return "the child came back"


def complain(words: str) -> None:
    raise InvalidInput(words, hint="do not")


def vanish() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def chatter() -> str:
    sys.stdout.write("this is not the answer\n")
    os.write(1, b"nor is this\n")
    return "the answer"


def untransferable() -> object:
    return lambda: None
