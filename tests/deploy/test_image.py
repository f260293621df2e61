"""The images hold what their roles need, as a user without rights on a read-only file system."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from penstock.storage.object_store import open_store
from tests.deploy import image as images
from tests.graph_server.conftest import EDGES, NODES
from tests.graph_server.server import running_server
from tests.graph_server.snapshots import publish
from tests.servers.parts import REPOSITORY
from tests.servers.postgres_port import over_tcp
from tests.servers.process import free_ports, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from tests.deploy.image import Image

TOKEN, OPERATOR = "a-service-token-of-tests", "an-operator-token-of-tests"
DEADLINE = 60.0


@pytest.fixture(scope="module")
def platform() -> Iterator[Image]:
    with tempfile.TemporaryDirectory(prefix="penstock-image-") as folder:
        yield images.build("platform", Path(folder))


@pytest.fixture(scope="module")
def graph_server() -> Iterator[Image]:
    with tempfile.TemporaryDirectory(prefix="penstock-image-") as folder:
        yield images.build("graph-server", Path(folder))


@pytest.fixture(params=["platform", "graph_server"])
def image(request: pytest.FixtureRequest) -> Image:
    built: Image = request.getfixturevalue(request.param)
    return built


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    return images.builder()


def execute(image: Image, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        image.inside(*command),
        env=image.environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


# what is in them


def test_an_image_takes_less_than_600_megabytes(image: Image) -> None:
    size = sum(p.lstat().st_size for p in image.root.rglob("*") if p.is_file())
    printed = re.search(r": (\d+) MB unpacked", image.said)
    assert printed is not None
    assert size < 600e6
    assert abs(int(printed[1]) - size / 1e6) < 5


def test_an_image_has_a_user_without_rights_and_no_file_that_others_may_change(
    image: Image,
) -> None:
    assert image.config["User"] == "10001:10001"
    for path in image.root.rglob("*"):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and path != image.root / "tmp":
            assert not mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWGRP | stat.S_IWOTH), path


def test_an_image_has_no_shell_and_no_package_manager(image: Image) -> None:
    programs = {path.name for path in (image.root / "usr/bin").iterdir()}
    assert programs.isdisjoint({"sh", "bash", "dash", "apt", "apt-get", "dpkg", "perl", "pip"})


def test_the_entry_point_is_the_command_of_the_image(platform: Image, graph_server: Image) -> None:
    assert platform.config["Entrypoint"] == ["penstock"]
    assert platform.config["Cmd"] == ["serve"]
    assert graph_server.config["Entrypoint"] == ["penstock-graph-server"]


def test_equal_files_give_equal_bytes(builder: ModuleType, tmp_path: Path) -> None:
    layers = []
    for number, names in enumerate((["b", "a/c", "d"], ["d", "a/c", "b"])):
        root = tmp_path / str(number)
        for name in names:
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(name)
            os.utime(file, (number * 1000, number * 1000))
        (root / "link").symlink_to("b")
        (root / "b").chmod(0o600 + number * 0o040)
        layers.append(builder.pack(root, tmp_path / f"{number}.tar.gz"))
    assert layers[0].digest == layers[1].digest
    assert layers[0].diff_id == layers[1].diff_id
    assert layers[0].unpacked == 5


def test_our_own_layer_is_the_same_when_it_is_built_again(
    builder: ModuleType, tmp_path: Path
) -> None:
    digests = set()
    for number in range(2):
        root = tmp_path / str(number) / "root"
        root.mkdir(parents=True)
        builder.penstock_layer(root, "platform")
        digests.add(builder.pack(root, tmp_path / f"{number}.tar.gz").digest)
    assert len(digests) == 1


# what runs in them


def test_the_command_line_runs_on_a_read_only_root(platform: Image) -> None:
    shown = execute(platform, "penstock", "--version")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert re.match(r"\d+\.\d+", shown.stdout.removeprefix("penstock "))


def test_nothing_but_tmp_can_be_written(image: Image) -> None:
    script = (
        "import errno, os, sys\n"
        "open('/tmp/mine', 'w').close()\n"
        "try:\n    os.open('/new', os.O_CREAT | os.O_WRONLY)\n"
        "except OSError as e:\n    print(errno.errorcode[e.errno], os.getuid())\n"
    )
    shown = execute(image, "python3", "-c", script)
    assert shown.stdout.split()[0] == "EROFS", shown.stderr
    if os.geteuid() == 0:
        assert shown.stdout.split()[1] == "10001"


def test_every_library_of_an_image_finds_what_it_links_to(image: Image) -> None:
    """A stripped or left-out library would be seen at the first use of a driver only."""
    modules = {
        "platform": "duckdb datafusion pyarrow.dataset pyarrow.parquet pyiceberg.catalog.sql"
        " penstock.maintenance.engines.embedded obstore pyiceberg_core pymysql grpc nats"
        " adbc_driver_postgresql.dbapi"
        " google.cloud.bigquery_storage python_calamine xlsxwriter cryptography.fernet psycopg"
        " asyncpg uvloop zstandard ssl",
        "graph-server": "ladybug ryugraph networkit networkx scipy.sparse.csgraph sknetwork"
        " pyarrow.parquet obstore uvloop psutil ssl",
    }[image.root.name]
    script = (
        f"import importlib\nfor name in {modules.split()!r}:\n    importlib.import_module(name)"
    )
    shown = execute(image, "python3", "-W", "ignore", "-c", script)
    assert shown.returncode == 0, shown.stderr


async def test_migrate_serve_and_worker_run_a_job(
    platform: Image, warehouse: str, tmp_path: Path
) -> None:
    image, [port, health] = platform, free_ports(2)
    settings = {
        **image.environment,
        "PENSTOCK_PORT": str(port),
        "PENSTOCK_SERVICE_TOKEN": TOKEN,
        "PENSTOCK_OPERATOR_TOKEN": OPERATOR,
        "PENSTOCK_URL": f"http://127.0.0.1:{port}",
        "PENSTOCK_WORKER_PORT": str(health),
        "PENSTOCK_STORAGE_URL": "file:///tmp/storage",
    }
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(over_tcp(warehouse))
        plane = settings | {"PENSTOCK_DATABASE_URL": database}
        migrate = await asyncio.create_subprocess_exec(
            *image.inside("penstock", "migrate"), env=plane
        )
        assert await migrate.wait() == 0
        for name, environment in (("serve", plane), ("worker", settings)):
            command, log = image.inside("penstock", name), tmp_path / name
            stack.enter_context(_running(command, environment, log))
            probe = f"http://127.0.0.1:{port if name == 'serve' else health}/ready"
            await until(lambda url=probe: httpx2.get(url, timeout=5).is_success, log)
        headers = {"Authorization": f"Bearer {OPERATOR}"}
        http = stack.enter_context(
            httpx2.Client(base_url=settings["PENSTOCK_URL"], headers=headers, timeout=10)
        )
        # In a thread: this one forwards to the database.
        added = await asyncio.to_thread(
            http.post, "/api/jobs", json={"kind": "probe", "payload": {}}
        )
        job = added.json()["data"]["id"]
        await until(lambda: _status(http, job) == "succeeded", tmp_path / "worker")


async def test_the_graph_server_loads_a_graph_and_answers(graph_server: Image) -> None:
    image = graph_server
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder = Path(name)
        (folder / "storage").mkdir()
        (folder / "i/tmp").mkdir(parents=True)
        store = open_store(str(folder / "storage"))
        published = await publish(store, NODES, EDGES, prefix="ada/5/v3/42/")
        folder.chmod(0o755)
        image.give(folder)
        async with running_server(
            folder / "i",
            f"file://{folder / 'storage'}",
            published,
            image.inside("python", "-I", "-m", "penstock.graph_server", binds=[folder]),
        ) as server:
            assert await server.rows("MATCH (p:Person) RETURN count(*)") == [[3]]


def test_the_command_of_the_graph_server_says_what_it_lacks(graph_server: Image) -> None:
    shown = execute(graph_server, "penstock-graph-server")
    assert shown.returncode == 2
    assert "PENSTOCK_INSTANCE_" in shown.stderr
    assert "Traceback" not in shown.stderr


def _running(command: list[str], environment: dict[str, str], log: Path) -> Any:
    return running(command, log=log, cwd=log.parent, env=environment)


def _status(http: httpx2.Client, job: int) -> str:
    status: str = http.get(f"/api/jobs/{job}").json()["data"]["status"]
    return status


async def until(holds: Callable[[], bool], log: Path) -> None:
    try:
        async with asyncio.timeout(DEADLINE):
            while True:
                with suppress(httpx2.TransportError):
                    if await asyncio.to_thread(holds):
                        return
                await asyncio.sleep(0.1)
    except TimeoutError:
        pytest.fail(log.read_text()[-4000:])


def test_the_dockerfile_installs_the_same_extras(builder: ModuleType) -> None:
    text = (images.BUILDER.parent / "Dockerfile").read_text()
    for name, extras in builder.IMAGES.items():
        assert f"AS {name}-libraries\nRUN sh install.sh {' '.join(extras)}\n" in text
        assert f'ENTRYPOINT ["{builder.COMMANDS[name][0]}"]' in text


def test_the_dockerfile_has_what_the_wheel_is_built_from(tmp_path: Path) -> None:
    """Its stage `code` with what .dockerignore leaves, built as there: by hatchling alone."""
    allowed = (REPOSITORY / ".dockerignore").read_text().split()
    for name in [*_copied(_stage("tools")), *_copied(_stage("code"))]:
        assert f"!{name}" in allowed, name
        source, target = REPOSITORY / name, tmp_path / Path(name).name
        if source.is_dir():
            skipped = shutil.ignore_patterns("__pycache__", "_sync")
            shutil.copytree(source, target, ignore=skipped)
        else:
            shutil.copy(source, target)
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [wheel] = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "penstock/client/_sync/client.py" in archive.namelist()


def _stage(name: str) -> str:
    stages = (images.BUILDER.parent / "Dockerfile").read_text().split("\nFROM ")
    [stage] = [text for text in stages if text.partition("\n")[0].endswith(f" AS {name}")]
    return stage


def _copied(stage: str) -> list[str]:
    """What a stage copies of the repository."""
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", stage, re.MULTILINE)
    return [name for line in lines for name in line.split()]
