"""A role that reads data on the server where Penstock's own database is: what it sees of that
database."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import asyncpg
import pytest

from penstock.sources.errors import SourceRefused
from penstock.sources.registry import open_source
from tests.graphs.deployment import connected, postgres, postgres_secrets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SECRETS = ("api_key", "idempotency", "data_source_credentials")


@pytest.fixture
async def reader(database: str) -> AsyncIterator[str]:
    """A role that an operator lets read everything in the schema of jobs, runs and mappings, now
    and later."""
    role = f"reader_of_{urlsplit(database).path.strip('/')}"
    async with connected(database) as owner:
        await owner.execute(
            f"CREATE ROLE {role} LOGIN PASSWORD '{postgres_secrets(database)['password']}';"
            f"GRANT USAGE ON SCHEMA penstock TO {role};"
            f"GRANT SELECT ON ALL TABLES IN SCHEMA penstock TO {role};"
            f"ALTER DEFAULT PRIVILEGES IN SCHEMA penstock GRANT SELECT ON TABLES TO {role}"
        )
        yield role
        await owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_a_role_that_reads_jobs_and_mappings_reads_no_digest_and_no_sealed_secret(
    database: str, reader: str
) -> None:
    password = postgres_secrets(database)["password"]
    connection = await asyncpg.connect(database, user=reader, password=password)
    try:
        assert await connection.fetchval("SELECT count(*) FROM penstock.data_source") == 0
        for table in SECRETS:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.fetch(f"SELECT * FROM penstock_secret.{table}")
    finally:
        await connection.close()
    async with connected(database) as owner:
        columns = await owner.fetch(
            "SELECT table_schema, table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'penstock'"
            " AND (column_name IN ('digest', 'credentials') AND data_type = 'bytea')"
        )
    assert columns == []


async def test_the_driver_refuses_a_penstocks_own_database_whoever_asks(
    database: str, reader: str
) -> None:
    """It knows it by what is in it: no name, address or forwarded port makes it another."""
    for user in (None, reader):
        config = postgres(database) | ({} if user is None else {"user": user})
        async with open_source("postgres", config, postgres_secrets(database)) as source:
            for ask in (source.test, lambda: source.schema("SELECT 1 AS a"), source.catalog.tables):
                with pytest.raises(SourceRefused, match="cannot be a data source"):
                    await ask()


async def test_another_database_of_the_same_server_is_read(warehouse: str) -> None:
    async with open_source("postgres", postgres(warehouse), postgres_secrets(warehouse)) as source:
        assert (await source.test()).startswith("PostgreSQL")
