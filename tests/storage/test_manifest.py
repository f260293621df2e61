"""The manifest: one winner, whole or nothing, and parts that are what it says."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.kit.errors import InvalidInput
from penstock.storage.errors import ObjectDamaged, ObjectExists, ObjectMissing
from penstock.storage.manifest import (
    Entity,
    Manifest,
    check_parts,
    entity_from_json,
    entity_to_json,
    read_manifest,
    sql_digest,
    write_manifest,
)
from penstock.storage.parquet_sink import write_parquet
from penstock.storage.part import Part
from penstock.storage.schema import unpack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.storage.contract import Store
    from tests.storage.conftest import Place

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("s", "Europe/Zurich"))])
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


async def entity(store: Store, prefix: str, attempt: str = "a") -> Entity:
    async def batches() -> AsyncIterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_arrays(
            [[1, 2, 3], pa.array([1, 2, None], SCHEMA.types[1])], schema=SCHEMA
        )

    return (await write_parquet(store, prefix, SCHEMA, batches(), attempt=attempt)).entity(
        "SELECT 1"
    )


async def test_a_manifest_comes_back_as_it_was_written(store: Store) -> None:
    entities = {
        "nodes/Person": await entity(store, "s/nodes/Person/"),
        "edges/KNOWS": await entity(store, "s/edges/"),
    }
    written = Manifest(created_at=NOON, entities=entities)
    await write_manifest(store, "s/", written)
    read = await read_manifest(store, "s/")
    assert read == written
    assert (read.rows, read.size) == (6, sum(p.size for p in read.parts))
    assert unpack(read.entities["nodes/Person"].arrow_schema).equals(SCHEMA)
    assert read.entities["nodes/Person"].sql_sha256 == sql_digest("SELECT 1")
    await check_parts(store, read)


async def test_a_manifest_is_readable_by_people(folder: Place) -> None:
    store = folder.open()
    entities = {"nodes/Person": await entity(store, "s/nodes/Person/")}
    await write_manifest(store, "s/", Manifest(created_at=NOON, entities=entities))
    body = json.loads(await store.get("s/manifest.json"))
    assert (body["rows"], body["created_at"]) == (3, "2026-11-15T12:00:00Z")
    person = body["entities"]["nodes/Person"]
    assert person["columns"][1] == {
        "name": "at",
        "type": "timestamp[s, tz=Europe/Zurich]",
        "nullable": True,
    }
    assert person["parts"][0]["path"] == "nodes/Person/part-00000-a.parquet"


async def test_without_a_manifest_there_is_nothing_to_read(store: Store) -> None:
    await entity(store, "s/nodes/Person/")
    with pytest.raises(ObjectMissing):
        await read_manifest(store, "s/")


async def test_of_many_manifests_at_once_one_wins(store: Store) -> None:
    offers = [Manifest(created_at=NOON + timedelta(seconds=i), entities={}) for i in range(4)]
    results = await asyncio.gather(
        *(write_manifest(store, "s/", m) for m in offers), return_exceptions=True
    )
    winners = [m for m, r in zip(offers, results, strict=True) if r is None]
    assert [type(r) for r in results if r is not None] == [ObjectExists] * 3
    assert [await read_manifest(store, "s/")] == winners


async def test_sending_the_same_manifest_again_is_a_success(store: Store) -> None:
    manifest = Manifest(created_at=NOON, entities={})
    await write_manifest(store, "s/", manifest)
    await write_manifest(store, "s/", manifest)
    with pytest.raises(ObjectExists):
        await write_manifest(
            store, "s/", Manifest(created_at=NOON + timedelta(seconds=1), entities={})
        )


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b"not json", b"\xff"])
async def test_something_else_is_no_manifest(folder: Place, damage: bytes) -> None:
    store = folder.open()
    await store.create("s/manifest.json", damage)
    with pytest.raises(ObjectDamaged):
        await read_manifest(store, "s/")


async def test_a_changed_or_cut_manifest_is_refused(folder: Place) -> None:
    store = folder.open()
    await write_manifest(
        store, "s/", Manifest(created_at=NOON, entities={"n": await entity(store, "s/n/")})
    )
    whole = await store.get("s/manifest.json")
    for number, wrong in enumerate((whole[:-10], whole.replace(b'"rows": 3', b'"rows": 4'))):
        await store.create(f"t{number}/manifest.json", wrong)
        with pytest.raises(ObjectDamaged):
            await read_manifest(store, f"t{number}/")


async def test_a_part_that_changed_or_went_is_found(folder: Place) -> None:
    store = folder.open()
    manifest = Manifest(created_at=NOON, entities={"n": await entity(store, "s/n/")})
    path = Path(store.url.removeprefix("file://")) / manifest.parts[0].path
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(ObjectDamaged, match="part-00000-a"):
        await check_parts(store, manifest)
    path.unlink()
    with pytest.raises(ObjectMissing):
        await check_parts(store, manifest)


async def test_a_manifest_names_only_what_is_below_it(folder: Place) -> None:
    far = Part(path="elsewhere/part-00000-a.parquet", size=1, rows=1)
    entities = {"n": Entity(columns=(), arrow_schema="", sql_sha256="", parts=(far,))}
    with pytest.raises(InvalidInput, match="not under s/"):
        await write_manifest(folder.open(), "s/", Manifest(created_at=NOON, entities=entities))


async def test_an_entity_survives_the_way_through_a_job_result(folder: Place) -> None:
    written = await entity(folder.open(), "s/n/")
    assert entity_from_json(json.loads(json.dumps(entity_to_json(written)))) == written
