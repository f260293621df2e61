"""Snapshots over HTTP, from a mapping to the files of its manifest, and their end."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import duckdb
import httpx2
import pytest

from penstock.accounts.role import Role
from penstock.storage.manifest import read_manifest
from tests.api.answers import error
from tests.api.running_api import data_of
from tests.api.test_mappings import BOUGHT, CUSTOMER
from tests.graphs.deployment import Deployment, connected, running_deployment, settings, shop, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

FIELDS = {
    "id", "mapping_id", "mapping_version", "owner_username", "name", "description", "status",
    "gcs_path", "size_bytes", "node_counts", "edge_counts", "progress", "error_message",
    "failed_step", "created_at", "updated_at", "ready_at", "expires_at", "ttl",
    "inactivity_timeout", "last_used_at",
}  # fmt: skip
BLOCKING = ("waiting_for_snapshot", "starting", "running", "suspended", "resuming")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """A control plane on the small shop. `ann` and `ben` are analysts, `ada` is an admin."""

    deployment: Deployment
    dsn: str
    folder: Path
    ann: httpx2.AsyncClient
    ben: httpx2.AsyncClient
    ada: httpx2.AsyncClient

    async def mapping(self, **changes: Any) -> int:
        body = {
            "name": "shop",
            "node_definitions": [CUSTOMER],
            "edge_definitions": [BOUGHT],
        } | changes
        number: int = data_of(await self.ann.post("/api/mappings", json=body), 201)["id"]
        return number

    async def snapshot(self, mapping_id: int, **changes: Any) -> dict[str, Any]:
        body = {"mapping_id": mapping_id, "name": "s"} | changes
        created: dict[str, Any] = data_of(await self.ann.post("/api/snapshots", json=body), 201)
        return created

    async def get(self, snapshot: dict[str, Any], tail: str = "") -> dict[str, Any]:
        body: dict[str, Any] = data_of(await self.ben.get(f"/api/snapshots/{snapshot['id']}{tail}"))
        return body

    async def instance(self, snapshot_id: int, status: str) -> int:
        async with connected(self.dsn) as connection:
            number: int = await connection.fetchval(
                "INSERT INTO penstock.instance (snapshot_id, owner_username, wrapper_type, name,"
                " status, url_slug, place, cpu_cores, memory_gb) VALUES"
                " ($1, 'ben', 'ladybug', 'i', $2, gen_random_uuid(), 'nowhere', 1, 2)"
                " RETURNING instance_id",
                snapshot_id,
                status,
            )
        return number

    async def execute(self, statement: str, *values: object) -> None:
        async with connected(self.dsn) as connection:
            await connection.execute(statement, *values)


@pytest.fixture
async def place(database: str, tmp_path: Path) -> AsyncIterator[Shop]:
    async with (
        running_deployment(database, settings(tmp_path / "home")) as deployment,
        AsyncExitStack() as stack,
    ):
        records, people = deployment.graphs.sources, deployment.services.people
        assert people is not None
        await people.users.provide("ada", role=Role.ADMIN, email=None, display_name=None)
        source = await records.add(
            name="shop", kind="duckdb", owner="ada", config=shop(tmp_path), secrets={}
        )
        await records.make_default(source.data_source_id)
        clients = {
            name: await stack.enter_async_context(
                httpx2.AsyncClient(
                    base_url=deployment.http.base_url, headers={"X-Username": name}, timeout=30
                )
            )
            for name in ("ann", "ben", "ada")
        }
        yield Shop(deployment=deployment, dsn=database, folder=tmp_path, **clients)


async def test_a_snapshot_of_a_mapping_becomes_ready_with_counts_files_and_manifest(
    place: Shop,
) -> None:
    mapping_id = await place.mapping()
    snapshot = await place.snapshot(mapping_id, description="d", ttl="P1D")
    assert set(snapshot) == FIELDS
    assert (snapshot["status"], snapshot["mapping_version"], snapshot["owner_username"]) == (
        "creating",
        1,
        "ann",
    )
    assert snapshot["progress"] == {
        "phase": "exporting",
        "jobs_total": 2,
        "jobs_completed": 0,
        "progress_percent": 0,
    }
    waiting = await place.get(snapshot, "/progress")
    assert (waiting["phase"], waiting["jobs_total"], waiting["jobs_pending"]) == ("exporting", 2, 2)
    async with place.deployment.working():
        await place.deployment.ready(snapshot["id"])
    ready = await place.get(snapshot)
    assert (ready["status"], ready["node_counts"]) == ("ready", {"Customer": 1000})
    assert (ready["edge_counts"], ready["progress"]["progress_percent"]) == (
        {"BOUGHT_WITH": 3000},
        100,
    )
    assert (ready["size_bytes"] > 0, ready["ready_at"] is not None) == (True, True)
    prefix = f"ann/{mapping_id}/v1/{snapshot['id']}/"
    assert ready["gcs_path"] == f"{place.deployment.settings.storage_root}/{prefix}"
    assert ready["gcs_path"].startswith("file:///")
    manifest = await read_manifest(place.deployment.store, prefix)
    assert set(manifest.entities) == {"nodes/Customer", "edges/BOUGHT_WITH"}
    progress = await place.get(snapshot, "/progress")
    assert set(progress) == {
        "phase", "jobs_total", "jobs_pending", "jobs_claimed", "jobs_submitted", "jobs_completed",
        "jobs_failed", "progress_percent", "jobs",
    }  # fmt: skip
    assert (progress["phase"], progress["jobs_completed"], progress["progress_percent"]) == (
        "ready",
        2,
        100,
    )
    job = progress["jobs"][0]
    assert set(job) == {
        "id",
        "name",
        "type",
        "status",
        "row_count",
        "rows_so_far",
        "size_bytes",
        "error_message",
    }
    assert (job["name"], job["type"], job["status"], job["row_count"]) == (
        "Customer",
        "node",
        "completed",
        1000,
    )
    listed = data_of(await place.ben.get(f"/api/mappings/{mapping_id}/snapshots"))
    assert listed == [ready]
    assert data_of(await place.ben.get(f"/api/mappings/{mapping_id}"))["snapshot_count"] == 1
    for path in ("retry", "cancel"):
        answer = await place.ann.post(f"/api/snapshots/{snapshot['id']}/{path}")
        error(answer, 409, "INVALID_STATE_TRANSITION")


async def test_a_retry_exports_only_what_did_not_complete(place: Shop) -> None:
    numbered = CUSTOMER | {
        "label": "Numbered",
        "sql": "SELECT CAST(name AS BIGINT) AS id FROM customers",
        "properties": [],
    }
    snapshot = await place.snapshot(
        await place.mapping(node_definitions=[CUSTOMER, numbered], edge_definitions=[])
    )
    async with place.deployment.working():
        await place.deployment.failed(snapshot["id"])
        failed = await place.get(snapshot)
        assert (failed["status"], failed["failed_step"]) == ("failed", "Numbered")
        assert failed["error_message"].startswith("Node Numbered")
        assert failed["node_counts"] == {"Customer": 1000}
        before = (await place.get(snapshot, "/progress"))["jobs"]
        assert [job["status"] for job in before] == ["completed", "failed"]
        error(
            await place.ben.post(f"/api/snapshots/{snapshot['id']}/retry"), 403, "PERMISSION_DENIED"
        )
        with duckdb.connect(str(place.folder / "shop.duckdb")) as db:
            db.execute("UPDATE customers SET name = id")
        again = data_of(await place.ann.post(f"/api/snapshots/{snapshot['id']}/retry"))
        assert (again["status"], again["error_message"], again["progress"]["jobs_completed"]) == (
            "creating",
            None,
            1,
        )
        await place.deployment.ready(snapshot["id"])
    after = (await place.get(snapshot, "/progress"))["jobs"]
    assert after[0]["id"] == before[0]["id"]
    assert after[1]["id"] != before[1]["id"]
    assert (await place.get(snapshot))["node_counts"] == {"Customer": 1000, "Numbered": 1000}


async def test_a_cancelled_snapshot_is_over_and_its_jobs_with_it(place: Shop) -> None:
    snapshot = await place.snapshot(await place.mapping())
    path = f"/api/snapshots/{snapshot['id']}"
    error(await place.ben.post(f"{path}/cancel"), 403, "PERMISSION_DENIED")
    cancelled = data_of(await place.ann.post(f"{path}/cancel"))
    assert (cancelled["status"], cancelled["error_message"]) == ("cancelled", "Cancelled by ann.")
    assert await place.deployment.services.store.claim("w", ["export"], 10) == []
    for step in ("cancel", "retry"):
        error(await place.ann.post(f"{path}/{step}"), 409, "INVALID_STATE_TRANSITION")
    data_of(await place.ann.delete(path))


async def test_a_snapshot_that_is_being_made_is_cancelled_when_it_is_deleted(place: Shop) -> None:
    snapshot = await place.snapshot(await place.mapping())
    error(await place.ben.delete(f"/api/snapshots/{snapshot['id']}"), 403, "PERMISSION_DENIED")
    data_of(await place.ada.delete(f"/api/snapshots/{snapshot['id']}"))
    error(await place.ann.get(f"/api/snapshots/{snapshot['id']}"), 404, "RESOURCE_NOT_FOUND")
    assert await place.deployment.services.store.claim("w", ["export"], 10) == []


async def test_a_snapshot_stays_while_an_instance_needs_it_and_then_goes_with_its_files(
    place: Shop,
) -> None:
    mapping_id = await place.mapping()
    snapshot = await place.snapshot(mapping_id)
    path = f"/api/snapshots/{snapshot['id']}"
    async with place.deployment.working():
        await place.deployment.ready(snapshot["id"])
        assert await place.deployment.files()
        for status in BLOCKING:
            needing = await place.instance(snapshot["id"], status)
            refused = error(await place.ann.delete(path), 409, "DEPENDENCY_EXISTS")
            assert refused["details"]["instance_count"] == 1
            assert refused["details"]["instances"] == [
                {"id": needing, "name": "i", "status": status}
            ]
            await place.execute("DELETE FROM penstock.instance")
        for status in ("stopping", "failed"):
            await place.instance(snapshot["id"], status)
        await place.ben.post(
            "/api/favorites", json={"resource_type": "snapshot", "resource_id": snapshot["id"]}
        )
        error(await place.ann.delete(f"/api/mappings/{mapping_id}"), 409, "DEPENDENCY_EXISTS")
        data_of(await place.ann.delete(path))
        error(await place.ann.get(path), 404, "RESOURCE_NOT_FOUND")
        assert data_of(await place.ben.get("/api/favorites")) == []

        async def erased() -> bool:
            return not await place.deployment.files()

        await until(erased)
    data_of(await place.ann.delete(f"/api/mappings/{mapping_id}"))


async def test_a_snapshot_that_somebody_is_about_to_use_is_not_deleted_under_them(
    place: Shop,
) -> None:
    mapping_id = await place.mapping()
    snapshot = await place.snapshot(mapping_id)
    await place.execute("UPDATE penstock.snapshot SET status = 'ready'")
    graphs = place.deployment.graphs
    async with graphs.mapped._db.transaction() as tx:
        reusable = await graphs.mapped.find_reusable(tx, mapping_id, 1, 1, timedelta(hours=1))
        assert reusable is not None
        deleting = asyncio.create_task(place.ann.delete(f"/api/snapshots/{snapshot['id']}"))

        async def blocked() -> bool:
            async with connected(place.dsn) as connection:
                waiting = await connection.fetchval(
                    "SELECT count(*) FROM pg_locks WHERE NOT granted"
                )
            return bool(waiting)

        await until(blocked)
        await tx.connection.execute(
            "INSERT INTO penstock.instance (snapshot_id, owner_username, wrapper_type, name,"
            " status, url_slug, place, cpu_cores, memory_gb) VALUES"
            f" ({snapshot['id']}, 'ben', 'ladybug', 'i', 'failed', 'x', 'nowhere', 1, 2)"
        )
        await tx.connection.execute("UPDATE penstock.instance SET status = 'suspended'")
    error(await deleting, 409, "DEPENDENCY_EXISTS")


async def test_snapshots_are_listed_by_what_they_are(place: Shop) -> None:
    mapping_id, other = await place.mapping(), await place.mapping(edge_definitions=[])
    for n, of in enumerate((mapping_id, other, mapping_id)):
        await place.snapshot(of, name=f"s{n}")
    await place.execute(
        "UPDATE penstock.snapshot SET status = 'ready', owner_username = 'ben' WHERE name = 's1'"
    )

    async def names(path: str = "/api/snapshots", **query: Any) -> list[str]:
        return [snapshot["name"] for snapshot in data_of(await place.ada.get(path, params=query))]

    assert await names() == ["s2", "s1", "s0"]
    assert await names(sort_by="name", sort_order="asc", offset=1) == ["s1", "s2"]
    assert await names(mapping_id=mapping_id) == ["s2", "s0"]
    assert await names(f"/api/mappings/{other}/snapshots") == ["s1"]
    assert await names(status="ready") == ["s1"]
    assert await names(owner="ben") == ["s1"]
    assert await names(search="S1") == ["s1"]
    assert await names(search="' OR true --") == []
    moment = data_of(await place.ada.get("/api/snapshots", params={"search": "s1"}))[0][
        "created_at"
    ]
    assert await names(created_after=moment) == ["s2", "s1"]
    for bad in (
        {"sort_by": "prefix"},
        {"status": "odd"},
        {"mapping_id": 0},
        {"limit": 0},
        {"search": "\x00"},
    ):
        error(await place.ada.get("/api/snapshots", params=bad), 422, "VALIDATION_FAILED")
    error(await place.ada.get("/api/mappings/99/snapshots"), 404, "RESOURCE_NOT_FOUND")


async def test_a_snapshot_is_made_of_any_version_by_anybody_and_of_nothing_that_is_not_there(
    place: Shop,
) -> None:
    mapping_id = await place.mapping()
    change = {"change_description": "x", "edge_definitions": []}
    data_of(await place.ann.put(f"/api/mappings/{mapping_id}", json=change))
    first = data_of(
        await place.ben.post(
            "/api/snapshots", json={"mapping_id": mapping_id, "name": "s", "mapping_version": 1}
        ),
        201,
    )
    assert (first["owner_username"], first["mapping_version"], first["progress"]["jobs_total"]) == (
        "ben",
        1,
        2,
    )
    current = await place.snapshot(mapping_id)
    assert (current["mapping_version"], current["progress"]["jobs_total"]) == (2, 1)
    for missing in ({"mapping_id": 99}, {"mapping_id": mapping_id, "mapping_version": 3}):
        error(
            await place.ann.post("/api/snapshots", json={"name": "s", **missing}),
            404,
            "RESOURCE_NOT_FOUND",
        )
    spoilt: list[dict[str, Any]] = [
        {"name": ""}, {"name": "n" * 256}, {"description": "d" * 4001}, {"mapping_version": 0},
        {"mapping_id": "1"}, {"ttl": "P"}, {"ttl": "P91D"}, {"inactivity_timeout": "-P1D"},
        {"status": "ready"}, {"name": "\x00"},
    ]  # fmt: skip
    for bad in spoilt:
        document = {"mapping_id": mapping_id, "name": "s"} | bad
        error(await place.ann.post("/api/snapshots", json=document), 422, "VALIDATION_FAILED")
    for path in ("", "/progress"):
        error(await place.ann.get(f"/api/snapshots/99{path}"), 404, "RESOURCE_NOT_FOUND")
    for path in ("retry", "cancel"):
        error(await place.ann.post(f"/api/snapshots/99/{path}"), 404, "RESOURCE_NOT_FOUND")


async def test_a_name_and_a_life_are_its_owners_to_change(place: Shop) -> None:
    snapshot = await place.snapshot(await place.mapping(), description="d")
    assert (snapshot["ttl"], snapshot["expires_at"] is not None) == ("P7D", True)
    path = f"/api/snapshots/{snapshot['id']}"
    renamed = data_of(await place.ann.put(path, json={"name": "new"}))
    assert (renamed["name"], renamed["description"]) == ("new", "d")
    assert data_of(await place.ada.put(path, json={"description": None}))["description"] is None
    living = data_of(
        await place.ann.put(f"{path}/lifecycle", json={"ttl": "P90D", "inactivity_timeout": "PT1H"})
    )
    assert (living["ttl"], living["inactivity_timeout"]) == ("P90D", "PT1H")
    assert living["expires_at"] > snapshot["expires_at"]
    cleared = data_of(await place.ann.put(f"{path}/lifecycle", json={"ttl": None}))
    assert (cleared["ttl"], cleared["expires_at"], cleared["inactivity_timeout"]) == (
        None,
        None,
        "PT1H",
    )
    for body in ({"name": ""}, {"name": "n" * 256}, {"status": "ready"}):
        error(await place.ann.put(path, json=body), 422, "VALIDATION_FAILED")
    error(
        await place.ann.put(f"{path}/lifecycle", json={"ttl": "P90DT1S"}), 422, "VALIDATION_FAILED"
    )
    error(await place.ben.put(path, json={"name": "x"}), 403, "PERMISSION_DENIED")
    error(await place.ben.put(f"{path}/lifecycle", json={"ttl": "P1D"}), 403, "PERMISSION_DENIED")


async def test_a_source_that_its_owner_may_no_longer_use_is_not_read(place: Shop) -> None:
    mapping_id = await place.mapping()
    await place.execute("UPDATE penstock.data_source SET is_default = false")
    answer = await place.ann.post("/api/snapshots", json={"mapping_id": mapping_id, "name": "s"})
    error(answer, 403, "PERMISSION_DENIED")
    assert data_of(await place.ann.get("/api/snapshots")) == []
