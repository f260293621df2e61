"""A worker has no web framework and no database in it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import pkgutil, sys, importlib, penstock.worker
for module in pkgutil.iter_modules(penstock.worker.__path__):
    if module.name != "child":
        importlib.import_module("penstock.worker." + module.name)
print(sorted({"fastapi", "starlette", "uvicorn", "asyncpg", "psycopg"} & set(sys.modules)))
"""


def test_importing_all_of_the_worker_loads_no_framework_and_no_database_driver() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
