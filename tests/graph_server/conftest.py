from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow as pa
import pytest

from penstock.storage.object_store import open_store
from tests.graph_server.server import GraphServer, running_server
from tests.graph_server.snapshots import Edge, Node, publish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

BIG = 2**62 + 1
IDS = [UUID(int=n) for n in range(1, 4)]

PERSON = Node(
    label="Person",
    key=("id", "INT64"),
    properties=(
        ("name", "STRING"),
        ("set", "BOOL"),
        ("born", "DATE"),
        ("seen", "TIMESTAMP"),
        ("score", "DOUBLE"),
        ("photo", "BLOB"),
        ("tags", "LIST"),
        ("facts", "MAP"),
        ("home", "STRUCT"),
        ("uid", "UUID"),
    ),
    table=pa.table(
        {
            "id": pa.array([1, 2, BIG]),
            "name": ["Ada", "Zoë 🐞", None],
            "set": [True, None, False],
            "born": pa.array([dt.date(1815, 12, 10), None, dt.date(1, 1, 1)]),
            "seen": pa.array([1767323045678000, None, None], pa.timestamp("us")),
            "score": [1.5, None, -0.25],
            "photo": pa.array([b"\x00\xff", None, b""]),
            "tags": pa.array([["a", None], [], None], pa.list_(pa.string())),
            "facts": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            "home": pa.array([{"city": "London", "no": 12}, None, {"city": None, "no": None}]),
            "uid": [str(number) for number in IDS],
        }
    ),
)
CITY = Node(label="City", key=("name", "STRING"), table=pa.table({"name": ["London", "Żółw"]}))
KNOWS = Edge(
    type="KNOWS",
    ends=("Person", "Person"),
    properties=(("since", "DATE"), ("weight", "DOUBLE")),
    table=pa.table(
        {
            "a": pa.array([1, 2]),
            "b": pa.array([2, BIG]),
            "since": pa.array([dt.date(1833, 6, 5), None]),
            "weight": [0.5, 2],
        }
    ),
)
LIVES = Edge(
    type="LIVES_IN",
    ends=("Person", "City"),
    table=pa.table({"p": pa.array([1, 2]), "c": ["London", "Żółw"]}),
)
NODES, EDGES = (PERSON, CITY), (KNOWS, LIVES)


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Short enough for a socket's path, which has 107 characters."""
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
async def server() -> AsyncIterator[GraphServer]:
    """People and cities, loaded from a local storage; for tests that only read."""
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        root = Path(folder) / "storage"
        root.mkdir()
        published = await publish(open_store(str(root)), NODES, EDGES, prefix="ada/5/v3/42/")
        async with running_server(Path(folder) / "i", f"file://{root}", published) as running:
            yield running
