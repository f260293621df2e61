"""Mappings and their versions in PostgreSQL."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import asyncpg
import pytest

from penstock.graphs.lifetime import LifetimeChange
from penstock.graphs.mappings.model import MappingFilter
from penstock.graphs.mappings.repository import MappingChanged, Mappings
from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.kit.db import Db
from penstock.kit.errors import DependencyExists, InvalidInput, NotFound
from tests.graphs.definitions import edge, mapping, node
from tests.graphs.deployment import connected, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.graphs.mappings.model import MappingRecord
    from tests.graphs.deployment import Deployment

SHOP = mapping(edges=[edge()])


@pytest.fixture
async def mappings(database: str) -> AsyncIterator[Mappings]:
    async with Db(database) as db:
        yield Mappings(db)


async def add(mappings: Mappings, name: str = "shop", owner: str = "ann") -> MappingRecord:
    return await mappings.add(owner=owner, name=name, definitions=SHOP)


async def test_a_mapping_is_kept_as_it_was_made(mappings: Mappings) -> None:
    mapping = await mappings.add(
        owner="ann",
        name="shöp",
        definitions=SHOP,
        description="d",
        ttl=timedelta(days=1),
        change_description="first",
    )
    assert await mappings.get(mapping.mapping_id) == mapping
    assert (
        mapping.current_version,
        mapping.node_count,
        mapping.edge_type_count,
        mapping.snapshot_count,
    ) == (
        1,
        1,
        1,
        0,
    )
    assert mapping.expires_at == mapping.created_at + timedelta(days=1)
    version = await mappings.version(mapping.mapping_id)
    assert (version.version, version.definitions, version.created_by) == (1, SHOP, "ann")
    assert (version.node_definitions, version.edge_definitions) == (SHOP.nodes, SHOP.edges)


async def test_ids_and_versions_that_do_not_exist_are_not_found(mappings: Mappings) -> None:
    mapping = await add(mappings)
    for mapping_id in (0, -1, 2**63, mapping.mapping_id + 1):
        for ask in (mappings.get, mappings.version):
            with pytest.raises(NotFound, match="mapping"):
                await ask(mapping_id)
        with pytest.raises(NotFound):
            await mappings.drop(mapping_id, actor="ann")
    for version in (0, -1, 2, 2**31, 2**63):
        with pytest.raises(NotFound, match="version"):
            await mappings.version(mapping.mapping_id, version)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": " "}, "name"),
        ({"name": "n" * 256}, "name"),
        ({"name": "a\x00"}, "name"),
        ({"description": "d" * 4001}, "description"),
        ({"change_description": ""}, "change_description"),
        ({"change_description": "c" * 1001}, "change_description"),
    ],
)
async def test_texts_have_limits(mappings: Mappings, changes: dict[str, str], field: str) -> None:
    mapping = await add(mappings, name="n" * 255)
    texts = {"change_description": "c" * 1000} | {
        k: v for k, v in changes.items() if k == "change_description"
    }
    now = replace(mapping, description="d" * 4000)
    await mappings.update(
        now, read=mapping, definitions=None, change_description="c" * 1000, actor="ann"
    )
    read = await mappings.get(mapping.mapping_id)
    spoilt = replace(read, **{k: v for k, v in changes.items() if k != "change_description"})
    with pytest.raises(InvalidInput) as refused:
        await mappings.update(spoilt, read=read, definitions=None, actor="ann", **texts)
    assert refused.value.details["field"] == field
    assert await mappings.get(mapping.mapping_id) == read


async def test_a_change_of_definitions_appends_a_version_and_a_name_does_not(
    mappings: Mappings,
) -> None:
    first = await add(mappings)
    second = await mappings.update(
        first,
        read=first,
        definitions=mapping([node("Other")]),
        change_description="other",
        actor="bob",
    )
    assert (second.current_version, second.node_count, second.edge_type_count) == (2, 1, 0)
    renamed = await mappings.update(
        replace(second, name="new"),
        read=second,
        definitions=None,
        change_description="name",
        actor="ann",
    )
    assert (renamed.name, renamed.current_version) == ("new", 2)
    assert (await mappings.version(first.mapping_id, 1)).definitions == SHOP
    listed = await mappings.versions(first.mapping_id)
    assert [(v.version, v.created_by, v.change_description) for v in listed] == [
        (2, "bob", "other"),
        (1, "ann", None),
    ]


async def test_a_version_cannot_be_changed_or_taken_away_even_by_hand(
    mappings: Mappings, database: str
) -> None:
    mapping = await add(mappings)
    async with connected(database) as connection:
        for statement in (
            "UPDATE penstock.mapping_version SET change_description = 'x'",
            "DELETE FROM penstock.mapping_version",
        ):
            with pytest.raises(asyncpg.RestrictViolationError, match="there for good"):
                await connection.execute(statement)
        await mappings.drop(mapping.mapping_id, actor="ann")
        assert await connection.fetchval("SELECT count(*) FROM penstock.mapping_version") == 0


async def test_of_many_writers_that_read_the_same_one_wins(mappings: Mappings) -> None:
    read = await add(mappings)

    async def write(n: int) -> int:
        changed = mapping([node(f"N{n}")])
        try:
            created = await mappings.update(
                read, read=read, definitions=changed, change_description="n", actor=f"u{n}"
            )
        except MappingChanged:
            return 0
        return created.current_version

    assert sorted(await asyncio.gather(*(write(n) for n in range(8)))) == [0] * 7 + [2]
    assert len(await mappings.versions(read.mapping_id)) == 2


async def test_pages_filter_sort_and_count(mappings: Mappings) -> None:
    records = [
        await add(mappings, name=name, owner=owner)
        for name, owner in [("b_1", "ann"), ("a%", "bob"), ("C", "ann")]
    ]

    async def names(which: MappingFilter | None = None, **page: object) -> tuple[list[str], int]:
        rows, total = await mappings.page(which or MappingFilter(), **page)
        return [row.name for row in rows], total

    assert await names() == (["C", "a%", "b_1"], 3)
    assert await names(ascending=True, limit=1, offset=1) == (["a%"], 3)
    assert await names(sort_by="id", ascending=True) == (["b_1", "a%", "C"], 3)
    assert await names(MappingFilter(owner="ann")) == (["C", "b_1"], 2)
    assert await names(MappingFilter(search="c")) == (["C"], 1)
    assert await names(MappingFilter(search="%")) == (["a%"], 1)
    assert await names(MappingFilter(search="_")) == (["b_1"], 1)
    assert await names(MappingFilter(search="'; DROP TABLE penstock.mapping; --")) == ([], 0)
    assert await names(MappingFilter(created_after=records[1].created_at)) == (["C", "a%"], 2)
    assert await names(MappingFilter(created_before=records[1].created_at)) == (["a%", "b_1"], 2)


async def test_a_life_counts_from_when_it_is_set_and_null_clears(mappings: Mappings) -> None:
    mapping = await add(mappings)
    day = timedelta(days=1)
    living = await mappings.live(mapping.mapping_id, LifetimeChange(told={"ttl": day}))
    assert living.ttl == day
    assert living.expires_at == living.updated_at + day
    idle = await mappings.live(mapping.mapping_id, LifetimeChange(told={"inactivity_timeout": day}))
    assert (idle.ttl, idle.expires_at, idle.inactivity_timeout) == (day, living.expires_at, day)
    cleared = await mappings.live(mapping.mapping_id, LifetimeChange(told={"ttl": None}))
    assert (cleared.ttl, cleared.expires_at, cleared.inactivity_timeout) == (None, None, day)


async def test_a_snapshot_of_a_mapping_is_opened_with_all_its_exports_or_not_at_all(
    deployment: Deployment, duck: int
) -> None:
    graphs = deployment.graphs
    mapping = await graphs.mappings.add(
        owner="me", name="shop", definitions=SHOP, data_source_id=duck
    )
    version = await graphs.mappings.version(mapping.mapping_id)
    async with graphs.mapped._db.transaction() as tx:
        opened = await graphs.mapped.open(
            tx, mapping=mapping, version=version, owner="you", name="s"
        )
    assert (opened.status, opened.mapping_id, opened.mapping_version) == (
        SnapshotStatus.CREATING,
        mapping.mapping_id,
        1,
    )
    assert (opened.data_source_id, opened.owner_username) == (duck, "you")
    jobs = await deployment.jobs(opened.snapshot_id)
    assert [job["entity_name"] for job in jobs] == ["Customer", "KNOWS"]
    assert [job["column_names"] for job in jobs] == [["id", "name"], ["a", "b"]]
    with pytest.raises(DependencyExists) as refused:
        await graphs.mappings.drop(mapping.mapping_id, actor="me")
    assert refused.value.details == {"snapshot_count": 1, "snapshots": [opened.snapshot_id]}
    assert (await graphs.mappings.get(mapping.mapping_id)).snapshot_count == 1


async def test_a_snapshot_in_the_making_keeps_its_mapping(
    mappings: Mappings, database: str
) -> None:
    """It is inserted before the mapping's end looks for snapshots, and committed after."""
    mapping = await add(mappings)

    async def blocked() -> bool:
        async with connected(database) as other:
            return bool(await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))

    async with connected(database) as connection, connection.transaction():
        await connection.execute(
            "INSERT INTO penstock.snapshot (mapping_id, mapping_version, owner_username, name)"
            " VALUES ($1, 1, 'ann', 's')",
            mapping.mapping_id,
        )
        dropping = asyncio.create_task(mappings.drop(mapping.mapping_id, actor="ann"))
        await until(blocked)
    with pytest.raises(DependencyExists):
        await dropping
    assert (await mappings.get(mapping.mapping_id)).snapshot_count == 1


async def test_a_source_that_a_mapping_is_on_stays_whoever_drops_it(
    deployment: Deployment, duck: int
) -> None:
    mapping = await deployment.graphs.mappings.add(
        owner="me", name="shop", definitions=SHOP, data_source_id=duck
    )
    with pytest.raises(DependencyExists):
        await deployment.graphs.sources.drop(duck)
    await deployment.graphs.mappings.drop(mapping.mapping_id, actor="me")
    await deployment.graphs.sources.drop(duck)


async def test_a_ready_snapshot_is_taken_again_while_it_is_young_enough(
    deployment: Deployment, duck: int
) -> None:
    graphs = deployment.graphs
    mapping = await graphs.mappings.add(
        owner="me", name="shop", definitions=SHOP, data_source_id=duck
    )
    version = await graphs.mappings.version(mapping.mapping_id)
    hour = timedelta(hours=1)

    async def reusable(data_source_id: int, max_age: timedelta, v: int = 1) -> int | None:
        async with graphs.mapped._db.transaction() as tx:
            snapshot = await graphs.mapped.find_reusable(
                tx, mapping.mapping_id, v, data_source_id, max_age
            )
        return None if snapshot is None else snapshot.snapshot_id

    async with graphs.mapped._db.transaction() as tx:
        opened = await graphs.mapped.open(
            tx, mapping=mapping, version=version, owner="me", name="s"
        )
    assert await reusable(duck, hour) is None
    async with deployment.working():
        ready = await deployment.ready(opened.snapshot_id)
    assert ready.node_counts == {"Customer": 1000}
    assert await reusable(duck, hour) == opened.snapshot_id
    assert await reusable(duck, timedelta(0)) is None
    assert await reusable(duck, hour, 2) is None
    assert await reusable(duck + 1, hour) is None
