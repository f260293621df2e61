"""A mapping's tree asks the database as often for much as for little."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.graphs.mappings.repository import Mappings
from penstock.graphs.mappings.tree import MappingTrees
from penstock.kit.db import Db
from tests.graphs.definitions import mapping, node
from tests.graphs.deployment import connected

if TYPE_CHECKING:
    from asyncpg.connection import LoggedQuery

VERSIONS, SNAPSHOTS = 50, 20


async def test_fifty_versions_of_twenty_snapshots_take_four_queries(database: str) -> None:
    async with Db(database, size=1) as db:
        mappings = Mappings(db)
        read = await mappings.add(owner="me", name="m", definitions=mapping())
        for n in range(1, VERSIONS):
            read = await mappings.update(
                read,
                read=read,
                definitions=mapping([node(f"N{n}")]),
                change_description="n",
                actor="me",
            )
        async with connected(database) as connection:
            await connection.execute(
                "INSERT INTO penstock.snapshot"
                " (mapping_id, mapping_version, owner_username, name, status)"
                f" SELECT {read.mapping_id}, v, 'me', 's', 'ready'"
                f" FROM generate_series(1, {VERSIONS}) AS v, generate_series(1, {SNAPSHOTS})"
            )
            await connection.execute(
                "INSERT INTO penstock.instance (snapshot_id, owner_username, wrapper_type, name,"
                " status, url_slug, place, cpu_cores, memory_gb)"
                " SELECT snapshot_id, 'me', 'ladybug', 'i', 'failed', snapshot_id, 'x', 1, 2"
                " FROM penstock.snapshot"
            )
        asked: list[str] = []

        def note(query: LoggedQuery) -> None:
            asked.append(query.query)

        async with db.connection() as only:
            only.add_query_logger(note)
        tree = await MappingTrees(db, mappings).grow(read.mapping_id)
    assert (len(tree.versions), len(tree.snapshots), tree.instance_count) == (50, 1000, 1000)
    assert sum("penstock." in query for query in asked) == 4
    assert len(asked) <= 10
