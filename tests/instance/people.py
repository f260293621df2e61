"""A graph server's algorithm routes over a small real graph: people who know each other and live in cities.

The keys of people and cities are the same numbers, on purpose.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2 as httpx
import pyarrow as pa
import pyarrow.parquet as pq
from fastapi import FastAPI
from pydantic import SecretStr

from penstock.graphdb.contract import EdgeTable, GraphEngine, GraphSchema, NodeTable, Property
from penstock.graphdb.registry import Opening, open_engine
from penstock.instance import algorithms, errors
from penstock.instance.executions import Executions
from penstock.instance.lock import WriteLock
from penstock.instance.room import EngineRoom
from penstock.instance.served import Graph

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
    EdgeTable(type="KNOWS", from_node="Person", to_node="Person", properties=(Property(name="cost", type="DOUBLE"),)),
    EdgeTable(type="LIVES_IN", from_node="Person", to_node="City"),
)


def load(engine: GraphEngine, folder: Path, crowd: int = 0) -> GraphSchema:
    """`crowd` more people who know nobody."""
    schema = GraphSchema(nodes=(PERSON, CITY), edges=EDGES)
    engine.create(schema)
    others = list(range(6, 6 + crowd))
    nowhere = [0.0] * crowd
    tables = {
        "person": {"id": [1, 2, 3, 4, 5, *others], "name": ["ada", "bob", "cyd", "dan", "eve", *map(str, others)]}
        | {"x": [0.0, 1.0, 0.5, 4.0, 5.0, *nowhere], "y": [0.0, 0.0, 0.5, 0.0, 0.0, *nowhere]},
        "city": {"id": [1, 2, 3]},
        "knows": {"a": [e[0] for e in KNOWS], "b": [e[1] for e in KNOWS], "cost": [e[2] for e in KNOWS]},
        "lives": {"a": [e[0] for e in LIVES_IN], "b": [e[1] for e in LIVES_IN]},
    }
    for (name, columns), table in zip(tables.items(), (*schema.nodes, *schema.edges), strict=True):
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
        engine.load(table, [folder / f"{name}.parquet"])
    return schema


@dataclass(frozen=True, slots=True)
class People:
    executions: Executions
    engine: GraphEngine
    lock: WriteLock
    client: httpx.AsyncClient

    async def run(self, path: str, body: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
        return await self.client.post(path, json=body or {}, headers=headers)

    async def done(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = await self.run(path, body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        assert found["status"] == "completed"
        return found

    def values(self, label: str, name: str) -> dict[Any, Any]:
        result = self.engine.query(f"MATCH (n:{label}) RETURN n.id AS id, n.{name} AS v")
        rows = [row for batch in result.batches(1000) for row in batch.to_pylist()]
        result.close()
        return {row["id"]: row["v"] for row in rows}


@asynccontextmanager
async def people(
    folder: Path, *, patience: float = 60.0, memory_bytes: int | None = None, at_once: int = 4, crowd: int = 0
) -> AsyncIterator[People]:
    (folder / "db").mkdir()
    engine = open_engine("ladybug", Opening(folder=folder / "db", memory_bytes=256 * 2**20, threads=2))
    schema = load(engine, folder, crowd)
    room, lock = EngineRoom(2, lambda: None), WriteLock()
    graph = Graph(engine=engine, room=room, schema=schema, counts=engine.counts())
    executions = Executions(
        graph=lambda: graph, lock=lock, folder=folder / "algorithms", memory_bytes=memory_bytes, at_once=at_once
    )
    app = FastAPI()
    app.state.token = SecretStr(TOKEN)
    errors.install(app)
    app.include_router(algorithms.router(executions, backend="ladybug", patience=patience))
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Penstock-User": "ada", "X-Penstock-Write": "1"}
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://graph", headers=headers, timeout=120) as client:
        try:
            yield People(executions, engine, lock, client)
        finally:
            await executions.close()
            room.close()
            engine.close()
