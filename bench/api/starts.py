"""From a POST to a running instance: of a snapshot that is ready, and of a mapping on a
warehouse.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import duckdb

if TYPE_CHECKING:
    from pathlib import Path

    from bench.api.asking import Asker

PATIENCE = 60.0
LOOK = 0.02
NODES = [
    {
        "label": "Customer",
        "sql": "SELECT id, name FROM customers",
        "primary_key": {"name": "id", "type": "INT64"},
        "properties": [{"name": "name", "type": "STRING"}],
    }
]
EDGES = [
    {
        "type": "KNOWS",
        "from_node": "Customer",
        "to_node": "Customer",
        "sql": "SELECT a, b FROM friends",
        "from_key": "a",
        "to_key": "b",
    }
]


def warehouse(folder: Path) -> dict[str, str]:
    """Ten customers who know each other in a ring."""
    file = folder / "warehouse.duckdb"
    with duckdb.connect(str(file)) as db:
        db.execute(
            "CREATE TABLE customers AS SELECT range AS id, 'c' || range AS name FROM range(10)"
        )
        db.execute(
            "CREATE TABLE friends AS SELECT range AS a, (range + 1) % 10 AS b FROM range(10)"
        )
    return {"database": str(file)}


async def mapping(ask: Asker, folder: Path) -> int:
    body = {"name": "warehouse", "type": "duckdb", "config": warehouse(folder)}
    source = await ask("POST", "/api/data-sources", body)
    mapping_body = await ask(
        "POST",
        "/api/mappings",
        {
            "name": "demo",
            "node_definitions": NODES,
            "edge_definitions": EDGES,
            "data_source_id": source["id"],
        },
    )
    number: int = mapping_body["id"]
    return number


async def ended(ask: Asker) -> None:
    """Servers outlive the house; none is left behind."""
    instances = await ask("GET", "/api/instances?limit=100")
    await asyncio.gather(
        *(
            ask("POST", f"/api/instances/{instance['id']}/terminate", {"force": True})
            for instance in instances
        )
    )


async def from_mapping(ask: Asker, mapping_id: int) -> tuple[float, int]:
    """Seconds, and the snapshot that was made."""
    seconds, instance = await _running(ask, {"mapping_id": mapping_id, "name": "from mapping"})
    return seconds, instance["snapshot_id"]


async def from_snapshot(ask: Asker, snapshot_id: int) -> float:
    seconds, _ = await _running(ask, {"snapshot_id": snapshot_id, "name": "from snapshot"})
    return seconds


async def _running(ask: Asker, body: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    started = time.perf_counter()
    created = await ask("POST", "/api/instances", body)
    path = f"/api/instances/{created['id']}"
    while (instance := await ask("GET", path))["status"] != "running":
        if instance["status"] == "failed" or time.perf_counter() - started > PATIENCE:
            raise SystemExit(
                f"It did not start: {instance['status']} {instance['error_code']}"
                f" {instance['error_message']}"
            )
        await asyncio.sleep(LOOK)
    took = time.perf_counter() - started
    await ask("POST", f"{path}/terminate", {"force": True})
    return took, instance
