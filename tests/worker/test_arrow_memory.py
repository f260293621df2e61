"""Arrow's memory in a worker and in its children, and the choice of whoever runs it."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa

CHOICE = "ARROW_DEFAULT_MEMORY_POOL"
PROGRAM = """
import subprocess, sys, pyarrow as pa
from penstock.worker.arrow_memory import choose_pool
choose_pool()
child = "import pyarrow as pa; print(pa.default_memory_pool().backend_name)"
print(pa.default_memory_pool().backend_name, flush=True)
subprocess.run([sys.executable, "-c", child], check=True)
"""


def pools(**environment: str) -> list[str]:
    variables = {name: value for name, value in os.environ.items() if name != CHOICE} | environment
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=variables
    )
    return done.stdout.split()


def test_a_worker_and_its_children_take_jemalloc_where_arrow_has_it() -> None:
    expected = (
        "jemalloc"
        if "jemalloc" in pa.supported_memory_backends()
        else pa.default_memory_pool().backend_name
    )
    assert pools() == [expected, expected]


def test_whoever_runs_it_may_choose_another() -> None:
    assert pools(**{CHOICE: "system"}) == ["system", "system"]
