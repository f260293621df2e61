"""With the guard off: what the kernel still refuses to the engine and to all its threads."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.graph_server.isolation.isolation import Isolation, examine
from penstock.storage.object_store import open_store
from tests.graph_server.conftest import EDGES, NODES
from tests.graph_server.server import GraphServer, running_server
from tests.graph_server.snapshots import publish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_NO_FILTERS = "system calls: needs seccomp filters, on x86_64 or aarch64"
SECRET = "the-other-tenants-secret"


@pytest.fixture(scope="module", params=["ladybug", "ryugraph"])
async def open_server(request: pytest.FixtureRequest) -> AsyncIterator[GraphServer]:
    """No guard, and beside its own snapshot one of somebody else."""
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        root = Path(folder) / "storage"
        root.mkdir()
        published = await publish(open_store(str(root)), NODES, EDGES, prefix="ada/5/v3/42/")
        other = root / "bob/1/v1/9"
        other.mkdir(parents=True)
        (other / "secret.csv").write_text(f"{SECRET}\n")
        settings = {"instance_guard": "false", "instance_backend": request.param}
        async with running_server(
            Path(folder) / "i", f"file://{root}", published, **settings
        ) as server:
            yield server


@pytest.mark.parametrize(
    "place",
    [
        "/etc/passwd",
        "/etc/hostname",
        "/proc/self/environ",
        "/proc/1/cmdline",
        "/root/.profile",
        "STORAGE",
        "TMP",
    ],
)
async def test_no_file_but_its_own_is_read(open_server: GraphServer, place: str) -> None:
    outside = open_server.folder.parent / "x.csv"
    outside.write_text(f"{SECRET}\n")
    places = {
        "STORAGE": str(open_server.folder.parent / "storage/bob/1/v1/9/secret.csv"),
        "TMP": str(outside),
    }
    text = (
        f"LOAD FROM '{places.get(place, place)}' (file_format='csv', header=false, delim='\\t') "
        "RETURN *"
    )
    answer = await open_server.query(text)
    assert answer.status_code == 400
    assert SECRET not in answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (MATCH (n:City) RETURN n.name) TO '{there}/out.csv'",
        "COPY (MATCH (n:City) RETURN n.name) TO '{there}/out.parquet'",
        "EXPORT DATABASE '{there}/out'",
    ],
)
async def test_nothing_is_written_outside(open_server: GraphServer, statement: str) -> None:
    outside = open_server.folder.parent
    for there in (outside, Path("/tmp"), Path("/var/tmp"), outside / "storage/ada/5/v3/42"):
        answer = await open_server.query(statement.format(there=there))
        assert answer.status_code == 400, there
        assert not (there / "out").exists()
        assert not list(there.glob("out.*"))


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE (:City {name: 'Atlantis'})",
        "MATCH (n:City) SET n.name = 'x'",
        "MATCH (n) DETACH DELETE n",
        "DROP TABLE City",
        "CREATE NODE TABLE Z(id INT64, PRIMARY KEY(id))",
        "ALTER TABLE City ADD x INT64",
    ],
)
async def test_the_graph_is_not_changed(open_server: GraphServer, statement: str) -> None:
    answer = await open_server.query(statement)
    assert (answer.status_code, "read-only" in answer.text) == (400, True)
    assert await open_server.rows("MATCH (n:City) RETURN count(*)") == [[2]]


async def test_without_guard_and_kernel_the_engine_reads_what_it_likes(short_folder: Path) -> None:
    """So it is they who hold."""
    root = short_folder / "storage"
    root.mkdir()
    published = await publish(open_store(str(root)), NODES, EDGES, prefix="ada/5/v3/42/")
    outside = short_folder / "x.csv"
    outside.write_text(f"{SECRET}\n")
    settings = {"instance_guard": "false", "instance_isolation": "off"}
    async with running_server(
        short_folder / "i", f"file://{root}", published, **settings
    ) as server:
        assert await server.rows(f"LOAD FROM '{outside}' (header=false) RETURN *") == [[SECRET]]


async def test_no_extension_is_fetched(open_server: GraphServer) -> None:
    answer = await open_server.query("INSTALL httpfs", timeout_ms=20_000)
    assert answer.status_code in (400, 408)


async def test_the_server_says_what_confines_it(open_server: GraphServer) -> None:
    status = (await open_server.http.get("/status")).json()
    assert status["isolation"].startswith("landlock-")
    assert status["isolation"].endswith("+seccomp")
    assert status["isolation_missing"] == list(examine().missing)


@pytest.mark.parametrize(
    ("level", "lacks"),
    [(0, "files"), (3, "TCP ports"), (5, "signals and abstract sockets"), (6, None)],
)
def test_what_a_kernel_lacks_is_named_with_what_it_would_need(
    level: int, lacks: str | None
) -> None:
    missing = Isolation(level=level, filters=True).missing
    assert [line.partition(":")[0] for line in missing[:1]] == ([] if lacks is None else [lacks])
    assert Isolation(level=level).missing == (*missing, _NO_FILTERS)
