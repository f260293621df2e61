"""The view of an autoscaler: what it counts, what it costs at depth, and who may read what else."""

from __future__ import annotations

import base64
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

import asyncpg
import pytest

from penstock.jobs import scaling
from penstock.kit.errors import Conflict, InvalidInput, PermissionDenied
from tests.jobs.test_counting import ADD, PARKED, READY, RUNNING, SCHEDULED
from tests.jobs.test_plans import _plan_of, node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    Connection = asyncpg.Connection[asyncpg.Record]

_roles = count(1)
LOOK = "SELECT * FROM penstock.scaling ORDER BY queue"
KEDA = (
    "SELECT coalesce(sum(ready + running + parked), 0) FROM penstock.scaling WHERE queue = 'export'"
)


@pytest.fixture
async def table(database: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()


@pytest.fixture
async def role(table: Connection) -> AsyncIterator[str]:
    """A name, free before and after the test."""
    name = f"keda_{next(_roles)}"
    yield name
    if await table.fetchval("SELECT count(*) FROM pg_roles WHERE rolname = $1", name):
        await table.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


async def add(table: Connection, queue: str, status: int, rows: int) -> None:
    await table.execute(ADD, queue, status, rows)


async def look(table: Connection) -> dict[str, tuple[int, int, int, int]]:
    return {
        row["queue"]: (row["ready"], row["running"], row["parked"], row["unfinished"])
        for row in await table.fetch(LOOK)
    }


async def test_each_queue_with_work_has_a_row(table: Connection) -> None:
    await add(table, "a", READY, 3)
    await add(table, "b", RUNNING, 2)
    await add(table, "b", PARKED, 4)
    await add(table, "c", READY, 1)
    await add(table, "c", PARKED, 1)
    await add(table, "d", SCHEDULED, 5)
    assert await look(table) == {"a": (3, 0, 0, 3), "b": (0, 2, 4, 6), "c": (1, 0, 1, 2)}


async def test_a_running_and_a_parked_job_count_as_work(table: Connection) -> None:
    """Otherwise the worker of a running query is taken away."""
    assert await table.fetchval(KEDA) == 0
    await add(table, "export", RUNNING, 1)
    await add(table, "export", PARKED, 1)
    assert await table.fetchval(KEDA) == 2


async def test_due_jobs_count_as_ready_although_no_worker_promotes_them(table: Connection) -> None:
    await add(table, "a", SCHEDULED, 2)
    await table.execute("UPDATE penstock.live SET wake_at = now() - interval '90 s'")
    assert await look(table) == {"a": (2, 0, 0, 2)}
    assert (await table.fetchrow(LOOK))["oldest_wait_seconds"] >= 90


async def test_parked_jobs_that_are_due_count_as_ready_once(table: Connection) -> None:
    """A worker for one job must look at them; with none, nobody makes them ready."""
    await add(table, "a", PARKED, 3)
    await table.execute(
        "UPDATE penstock.live SET wake_at = now() - interval '1 s'"
        " WHERE job_id = (SELECT min(job_id) FROM penstock.live)"
    )
    assert await look(table) == {"a": (1, 0, 2, 3)}


async def test_the_oldest_wait_is_that_of_the_head_of_the_queue(table: Connection) -> None:
    await add(table, "a", READY, 3)
    await table.execute(
        "UPDATE penstock.job SET created_at = now() - $1::interval"
        " WHERE job_id = (SELECT min(job_id) FROM penstock.job)",
        timedelta(seconds=100),
    )
    assert 100 <= (await table.fetchrow(LOOK))["oldest_wait_seconds"] < 1000


async def test_a_count_ends_at_its_bound_and_hides_no_other_queue(table: Connection) -> None:
    await add(table, "a", READY, 10_001)
    await add(table, "a", PARKED, 10_001)
    await add(table, "b", READY, 1)
    await add(table, "c", PARKED, 1)
    assert await look(table) == {
        "a": (10_000, 0, 10_000, 20_000),
        "b": (1, 0, 0, 1),
        "c": (0, 0, 1, 1),
    }


async def test_a_look_at_a_million_jobs_reads_a_few_pages_by_index(table: Connection) -> None:
    await add(table, "export", READY, 600_000)
    await add(table, "export", SCHEDULED, 390_000)
    await add(table, "match", RUNNING, 2_000)
    await add(table, "match", PARKED, 8_000)
    await table.execute("VACUUM ANALYZE penstock.live; ")
    explained = await table.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {KEDA}")
    plan = _plan_of(explained)
    assert "live" not in node(plan).scanned()
    pages = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    whole = await table.fetchval("SELECT pg_relation_size('penstock.live') / 8192")
    assert pages < 4_000, f"{pages} pages of a table of {whole}"
    assert whole > 5 * pages


async def test_the_guard_sees_a_plan_without_an_index(table: Connection) -> None:
    await add(table, "export", READY, 20_000)
    await table.execute("ANALYZE penstock.live; BEGIN; DROP INDEX penstock.live_ready")
    explained = await table.fetchval(f"EXPLAIN (FORMAT JSON) {KEDA}")
    await table.execute("ROLLBACK")
    assert "live" in node(_plan_of(explained)).scanned()


# the role


async def as_role(database: str, role: str) -> Connection:
    connection = await asyncpg.connect(database)
    await connection.execute(f"SET SESSION AUTHORIZATION {role}")
    return connection


async def test_the_role_reads_the_view_and_no_other_relation(
    database: str, table: Connection, role: str
) -> None:
    granted = await scaling.grant(database, role)
    assert granted == scaling.ScalingRole(name=role, created=True)
    await add(table, "export", READY, 3)
    reader = await as_role(database, role)
    assert await reader.fetchval(KEDA) == 3
    others = await table.fetch(
        "SELECT n.nspname || '.' || c.relname FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm')"
        " AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"
        " AND c.relname <> 'scaling'"
    )
    assert len(others) > 30
    for (name,) in others:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await reader.execute(f"SELECT * FROM {name} LIMIT 1")
    await reader.close()


async def test_the_role_changes_nothing(database: str, role: str) -> None:
    await scaling.grant(database, role)
    reader = await as_role(database, role)
    for statement in (
        "DELETE FROM penstock.live",
        "UPDATE penstock.scaling SET queue = 'x'",
        "CREATE TABLE penstock.mine ()",
        "SELECT nextval('penstock.job_id')",
        "SELECT penstock.make_outcome_partition('2031-01-01')",
    ):
        with pytest.raises(asyncpg.PostgresError):
            await reader.execute(statement)
    await reader.close()


async def test_a_role_that_is_there_is_granted_and_may_be_granted_again(
    database: str, table: Connection, role: str
) -> None:
    await table.execute(f"CREATE ROLE {role} LOGIN")
    for _ in range(2):
        granted = await scaling.grant(database, role, "a password")
        assert granted == scaling.ScalingRole(name=role, created=False)


async def test_a_role_that_can_read_more_is_refused_and_granted_nothing(
    database: str, table: Connection, role: str
) -> None:
    await table.execute(
        f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA penstock TO {role};"
        f" GRANT SELECT (job_id) ON penstock.job TO {role}"
    )
    with pytest.raises(Conflict, match=r"can read more than penstock.scaling: penstock.job\."):
        await scaling.grant(database, role)
    granted = "SELECT has_table_privilege($1, 'penstock.scaling', 'SELECT')"
    assert not await table.fetchval(granted, role)


async def test_a_member_of_another_role_is_refused(
    database: str, table: Connection, role: str
) -> None:
    await table.execute(f"CREATE ROLE {role} NOINHERIT; GRANT pg_read_all_data TO {role}")
    with pytest.raises(Conflict, match="is a member of pg_read_all_data"):
        await scaling.grant(database, role)


async def test_the_owner_of_the_tables_is_refused(database: str, table: Connection) -> None:
    own = await table.fetchval("SELECT current_user")
    with pytest.raises(InvalidInput, match=r"is a superuser|runs Penstock"):
        await scaling.grant(database, own)


@pytest.mark.parametrize("name", ["", "Keda", "keda; DROP TABLE x", "public", "pg_keda", "k" * 64])
async def test_a_name_that_is_none_is_refused(database: str, name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be the name of a role"):
        await scaling.grant(database, name)


async def test_a_user_that_may_not_create_roles_says_what_an_administrator_runs(
    database: str, table: Connection, role: str
) -> None:
    own = f"{role}_owner"
    await table.execute(f"CREATE ROLE {own} LOGIN PASSWORD 'its own'")
    try:
        dsn = f"{database.partition('&user=')[0]}&user={own}&password=its%20own"
        with pytest.raises(PermissionDenied, match=f"The database user {own} may not") as refused:
            await scaling.grant(dsn, role)
        assert f"CREATE ROLE {role}" in str(refused.value.hint)
    finally:
        await table.execute(f"DROP ROLE {own}")


async def test_a_database_without_the_view_is_told_to_migrate(warehouse: str, role: str) -> None:
    with pytest.raises(Conflict, match="There is no view"):
        await scaling.grant(warehouse, role)


async def test_the_verifier_is_what_the_server_makes_of_the_password(
    table: Connection, role: str
) -> None:
    await table.execute(
        f"SET password_encryption = 'scram-sha-256'; CREATE ROLE {role} PASSWORD 'a pass''word'"
    )
    stored = await table.fetchval("SELECT rolpassword FROM pg_authid WHERE rolname = $1", role)
    salt = base64.b64decode(stored.split("$")[1].split(":")[1])
    assert scaling.scram_verifier("a pass'word", salt) == stored
