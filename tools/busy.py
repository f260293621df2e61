"""Runs a command beside busy processes, as on a machine that others use too.

python -m tools.busy 8 pytest -n 3
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack

LOOP = "while True: pass"


def main(processes: int, command: list[str]) -> int:
    with ExitStack() as stack:
        for _ in range(processes):
            busy = stack.enter_context(subprocess.Popen([sys.executable, "-c", LOOP]))
            stack.callback(busy.kill)
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
