"""A graph server's algorithm routes over a small real graph: people who know each other and live in
cities.

The keys of people and cities are the same numbers, on purpose.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2 as httpx
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from penstock.graph_server.algorithms import routes as algorithms
from penstock.graph_server.algorithms.executions import Executions
from penstock.graph_server.algorithms.write_lock import WriteLock
from penstock.graph_server.engine.engine import Engine
from penstock.graph_server.engine.engine_work import Question
from penstock.graph_server.http import errors
from penstock.graph_server.isolation.isolation import Isolation
from penstock.graph_server.served_graph import Graph
from penstock.graph_server.settings import InstanceSettings
from penstock.graphdb.contract import EdgeTable, GraphSchema, NodeTable, Property
from penstock.http.body_memory import BodyMemory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

KNOWS = [(1, 2, 1.0), (2, 3, 1.0), (3, 1, 1.0), (3, 4, 5.0), (4, 5, 1.0), (1, 4, 9.0)]
LIVES_IN = [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)]
TOKEN = "t" * 32

PERSON = NodeTable(
    label="Person",
    key=Property(name="id", type="INT64"),
    properties=(
        Property(name="name", type="STRING"),
        Property(name="x", type="DOUBLE"),
        Property(name="y", type="DOUBLE"),
    ),
)
CITY = NodeTable(label="City", key=Property(name="id", type="INT64"))
EDGES = (
    EdgeTable(
        type="KNOWS",
        from_node="Person",
        to_node="Person",
        properties=(Property(name="cost", type="DOUBLE"),),
    ),
    EdgeTable(type="LIVES_IN", from_node="Person", to_node="City"),
)


async def load(engine: Engine, folder: Path, crowd: int = 0) -> GraphSchema:
    """`crowd` more people who know nobody."""
    schema = GraphSchema(nodes=(PERSON, CITY), edges=EDGES)
    (folder / "db").mkdir()
    await engine.open(folder / "db", [folder])
    await engine.create(schema)
    others = list(range(6, 6 + crowd))
    nowhere = [0.0] * crowd
    tables = {
        "person": {
            "id": [1, 2, 3, 4, 5, *others],
            "name": ["ada", "bob", "cyd", "dan", "eve", *map(str, others)],
        }
        | {"x": [0.0, 1.0, 0.5, 4.0, 5.0, *nowhere], "y": [0.0, 0.0, 0.5, 0.0, 0.0, *nowhere]},
        "city": {"id": [1, 2, 3]},
        "knows": {
            "a": [e[0] for e in KNOWS],
            "b": [e[1] for e in KNOWS],
            "cost": [e[2] for e in KNOWS],
        },
        "lives": {"a": [e[0] for e in LIVES_IN], "b": [e[1] for e in LIVES_IN]},
    }
    for (name, columns), table in zip(tables.items(), (*schema.nodes, *schema.edges), strict=True):
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
        await engine.load(table, [folder / f"{name}.parquet"], dangling="fail")
    await engine.seal(schema)
    return schema


@dataclass(frozen=True, slots=True)
class People:
    executions: Executions
    engine: Engine
    lock: WriteLock
    client: httpx.AsyncClient

    async def run(
        self, path: str, body: dict[str, Any] | None = None, **headers: str
    ) -> httpx.Response:
        return await self.client.post(path, json=body or {}, headers=headers)

    async def done(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = await self.run(path, body)
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        assert document["status"] == "completed"
        return document

    async def values(self, label: str, name: str) -> dict[Any, Any]:
        text = f"MATCH (n:{label}) RETURN n.id AS id, n.{name} AS v"

        def question(left: float) -> Question:
            return Question(text=text, parameters={}, timeout=left, max_rows=100_000, guard=True)

        answer = await self.engine.query(question, timeout=60)
        return dict(orjson.loads(await answer.whole())["rows"])


@asynccontextmanager
async def people(
    folder: Path,
    *,
    patience: float = 60.0,
    memory_bytes: int | None = None,
    at_once: int = 4,
    crowd: int = 0,
) -> AsyncIterator[People]:
    settings = InstanceSettings(
        id=1, token=SecretStr(TOKEN), dir=folder, memory_bytes=1024**3, isolation="off"
    )
    engine, lock = Engine(settings, Isolation(level=0), lost=pytest.fail), WriteLock()
    schema = await load(engine, folder, crowd)
    graph = Graph(engine=engine, schema=schema, counts=await engine.counts())
    executions = Executions(
        graph=lambda: graph,
        lock=lock,
        folder=folder / "algorithms",
        memory_bytes=memory_bytes,
        at_once=at_once,
    )
    app = FastAPI()
    app.state.token = SecretStr(TOKEN)
    app.state.body_memory = BodyMemory()
    errors.install(app)
    app.include_router(algorithms.router(executions, backend="ladybug", patience=patience))
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "X-Penstock-User": "ada",
        "X-Penstock-Write": "1",
    }
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://graph", headers=headers, timeout=120
    ) as client:
        try:
            yield People(executions, engine, lock, client)
        finally:
            await executions.close()
            await engine.close()
