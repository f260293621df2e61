"""`make bench NAME=client`: what it costs to import the client and to ask the command line for
help.

Processor time of whole processes, interpreter and all, the least of many: what others do on the
machine only adds.
"""

from __future__ import annotations

import os
import subprocess
import sys

from bench.figures import figure, publish

TIMES = 15
_ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}
"""The first of the times compiles, as a first use does; the others find that done."""
BARE = ["-c", "pass"]
CASES = {
    "import_penstock": ["-c", "import penstock"],
    "import_penstock_connect": ["-c", "from penstock import connect"],
    "import_penstock_async_client": ["-c", "from penstock import AsyncClient"],
    "help": ["-m", "penstock.cli", "--help"],
    "help_of_a_group": ["-m", "penstock.cli", "job", "--help"],
    "help_of_a_command": ["-m", "penstock.cli", "job", "list", "--help"],
}
GOAL = "< 150"


def main() -> int:
    figures = {"bare_interpreter": figure(_milliseconds(BARE), "ms of CPU")}
    for name, arguments in CASES.items():
        figures[name] = figure(_milliseconds(arguments), "ms of CPU", GOAL)
    return publish("client", figures)


def _milliseconds(arguments: list[str]) -> float:
    return min(_once(arguments) for _ in range(TIMES)) * 1000


def _once(arguments: list[str]) -> float:
    process = subprocess.Popen(
        [sys.executable, *arguments], env=_ENVIRONMENT, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
