from __future__ import annotations

import asyncpg
import pytest


@pytest.mark.parametrize("turn", [1, 2])
async def test_every_test_has_a_database_of_its_own(database: str, turn: int) -> None:
    connection = await asyncpg.connect(database)
    try:
        await connection.execute("CREATE TABLE note (body text)")
        assert await connection.fetchval("SELECT count(*) FROM note") == 0
    finally:
        await connection.close()
