"""Each extra installs what its role imports: tried in an environment that has nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.servers.parts import REPOSITORY, uv_program

if TYPE_CHECKING:
    from pathlib import Path

CONTROL_PLANE = """
import asyncio
from penstock.api.app import create_app
from penstock.wiring import settings as config
from penstock.wiring.control_plane import build_control_plane

async def main():
    settings = config.load()
    async with build_control_plane(settings, settings.database_dsn) as services:
        create_app(services)
    print("works")

asyncio.run(main())
"""
WORKER = """
from penstock.wiring import settings as config
from penstock.wiring.default_handlers import default_handlers
from penstock.wiring.worker import run_worker
default_handlers(config.load())
print("works")
"""
GRAPH_SERVER = """
import penstock.graph_server.process
from penstock.graphdb.registry import warm_up
warm_up("ladybug")
print("works")
"""
TRIED = {
    "server": CONTROL_PLANE,
    "worker": WORKER,
    "graph": GRAPH_SERVER,
    "reconcile": WORKER + "import penstock.engines.datafusion, penstock.engines.duckdb",
    "iceberg": WORKER + "import penstock.maintenance.engines.embedded, psycopg, sqlalchemy",
    "spark": "import penstock.maintenance.engines.spark.connect\nprint('works')",
}
"""What a role runs; the drivers of sources come as extras of their own."""


@pytest.fixture(scope="module")
def uv() -> str:
    return uv_program()


def install(uv: str, folder: Path, extra: str) -> Path:
    """An environment with this extra alone, out of uv's cache; returns its Python."""
    exported = [uv, "export", "-q", "--frozen", "--no-dev", "--no-emit-project", "--no-hashes"]
    requirements = subprocess.run(
        [*exported, "--extra", extra], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    (folder / "requirements.txt").write_text(requirements)
    environment = folder / "environment"
    python = environment / "bin/python"
    for command in (
        ["venv", "-q", "--offline", "--python", sys.executable, str(environment)],
        [
            *("pip", "install", "-q", "--offline", "--no-deps", "--python", str(python)),
            *("-r", str(folder / "requirements.txt")),
        ],
    ):
        done = subprocess.run([uv, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return python


def execute(python: Path, code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(python.parents[2]),
        "PYTHONPATH": str(REPOSITORY / "src"),
        **settings,
    }
    return subprocess.run(
        [str(python), "-W", "ignore", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("extra", TRIED)
def test_an_extra_brings_all_that_its_role_imports(
    uv: str, extra: str, database: str, tmp_path: Path
) -> None:
    python = install(uv, tmp_path, extra)
    shown = execute(
        python,
        TRIED[extra],
        PENSTOCK_DATABASE_URL=database,
        PENSTOCK_SERVICE_TOKEN="a-service-token-of-tests",
        PENSTOCK_STORAGE_URL=f"file://{tmp_path}/storage",
    )
    assert shown.returncode == 0, shown.stderr
    assert "works" in shown.stdout


def test_catalogs_without_pyiceberg_are_refused_in_a_sentence(
    uv: str, database: str, tmp_path: Path
) -> None:
    shown = execute(
        install(uv, tmp_path, "server"),
        CONTROL_PLANE,
        PENSTOCK_DATABASE_URL=database,
        PENSTOCK_CATALOGS='{"lake": {"type": "sql"}}',
    )
    assert "PENSTOCK_CATALOGS is set, but PyIceberg is not installed." in shown.stderr
