from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.conftest import prepare_template
from tests.proof.explorer import Actor, Explorer
from tests.proof.invariants import broken
from tests.proof.proof_db import ProofDatabase, proof_db_on
from tests.proof.servers import oldest_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from penstock.kit.postgres import Cluster


@pytest.fixture
async def proof_db(database: str) -> AsyncIterator[ProofDatabase]:
    """A stand on a fresh database; whatever the test did, the invariants hold after it."""
    async with proof_db_on(database) as prepared:
        yield prepared
        assert await broken(prepared.eye) == []


@pytest.fixture(scope="module")
async def explorer(pg: Cluster, template: str) -> AsyncIterator[Explorer]:
    """Three actors on one stand for all orders of a module: emptied before each, their plans made
    once."""
    admin = await asyncpg.connect(pg.dsn("postgres"))
    await admin.execute(f"CREATE DATABASE orders TEMPLATE {template}")
    async with proof_db_on(pg.dsn("orders")) as prepared:
        actors = {name: Actor(prepared.dsn, name) for name in "ABC"}
        yield Explorer(proof_db=prepared, actors=actors)
        for actor in actors.values():
            await actor.db.close()
    await admin.execute("DROP DATABASE orders WITH (FORCE)")
    await admin.close()


@pytest.fixture(scope="session")
async def oldest(short_dir: Path) -> AsyncIterator[Cluster]:
    async with oldest_server(short_dir / "oldest") as cluster:
        yield cluster


@pytest.fixture
async def old_database(oldest: Cluster) -> AsyncIterator[str]:
    """The DSN of a fresh database on the oldest server that we support."""
    admin = await asyncpg.connect(oldest.dsn("postgres"))
    await admin.execute("CREATE DATABASE proof")
    await prepare_template(oldest.dsn("proof"))
    yield oldest.dsn("proof")
    await admin.execute("DROP DATABASE proof WITH (FORCE)")
    await admin.close()


@pytest.fixture
async def old_stand(old_database: str) -> AsyncIterator[ProofDatabase]:
    """A stand on the oldest server that we support."""
    async with proof_db_on(old_database) as prepared:
        yield prepared
        assert await broken(prepared.eye) == []
