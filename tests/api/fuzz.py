"""`make fuzz NAME=api N=200 SEED=7`: single requests, sequences of them, and bodies of every shape.

They are the tests of `make test` with more cases; the seed there is the day.
"""

from __future__ import annotations

import os
import subprocess
import sys

TESTS = ("tests/api/test_schema.py", "tests/api/test_body_fuzz.py")


def run(cases: int, seed: int) -> int:
    """The number of files with a failure."""
    environment = os.environ | {
        "PENSTOCK_SCHEMATHESIS_EXAMPLES": str(cases),
        "PENSTOCK_FUZZ_BODIES": str(cases),
        "PENSTOCK_FUZZ_SEED": str(seed),
    }
    failures = 0
    for test in TESTS:
        command = [sys.executable, "-m", "pytest", test, "-q", "-o", "timeout=0"]
        failures += subprocess.run(command, env=environment, check=False).returncode != 0
    sys.stdout.write(
        f"{failures} of {len(TESTS)} failed; replay: make fuzz NAME=api N={cases} SEED={seed}\n"
    )
    return failures
