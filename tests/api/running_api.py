"""A control plane with users of every role, called over HTTP."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import asyncpg
import httpx2

from penstock.api.callers.identity import Identity, Role
from penstock.wiring.control_plane import build_control_plane
from tests.graphs.deployment import settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from penstock.api.services import Graphs, Services
    from tests.api.control_plane import Edge

PEOPLE = {
    "ann": Role.ANALYST,
    "ben": Role.ANALYST,
    "cleo": Role.ANALYST,
    "ada": Role.ADMIN,
    "oz": Role.OPS,
}


class Names:
    """An authenticator for tests: the token is the username."""

    async def identify(self, token: str) -> Identity | None:
        role = PEOPLE.get(token)
        return None if role is None else Identity(username=token, role=role, via="test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """`ann`, `ben` and `cleo` are analysts, `ada` is an admin, `oz` operates."""

    services: Services
    dsn: str
    ann: httpx2.AsyncClient
    ben: httpx2.AsyncClient
    cleo: httpx2.AsyncClient
    ada: httpx2.AsyncClient
    oz: httpx2.AsyncClient

    @property
    def graphs(self) -> Graphs:
        assert self.services.graphs is not None
        return self.services.graphs

    async def sql(self, statement: str, *values: Any) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.dsn)
        try:
            return await connection.fetch(statement, *values)
        finally:
            await connection.close()

    async def mapping(self, name: str = "m", owner: str = "ann", **values: Any) -> int:
        return await self._row("mapping", name=name, owner_username=owner, **values)

    async def snapshot(self, name: str = "s", owner: str = "ann", **values: Any) -> int:
        return await self._row("snapshot", name=name, owner_username=owner, **values)

    async def instance(
        self, name: str = "i", owner: str = "ann", status: str = "failed", **values: Any
    ) -> int:
        number = await self.sql("SELECT count(*) FROM penstock.instance")
        columns: dict[str, Any] = {
            "wrapper_type": "ladybug",
            "url_slug": f"{name}-{number[0][0]}",
            "place": "nowhere",
        }
        columns |= {
            "cpu_cores": 1,
            "memory_gb": 2,
            "name": name,
            "owner_username": owner,
            "status": status,
        }
        return await self._row("instance", **(columns | values))

    async def _row(self, table: str, **values: Any) -> int:
        places = ", ".join(f"${n}" for n in range(1, len(values) + 1))
        statement = (
            f"INSERT INTO penstock.{table} ({', '.join(values)}) VALUES ({places})"
            f" RETURNING {table}_id"
        )
        [row] = await self.sql(statement, *values.values())
        number: int = row[0]
        return number


@asynccontextmanager
async def running_api(dsn: str, edge: Edge, home: Path, **changes: Any) -> AsyncIterator[Api]:
    async with (
        build_control_plane(settings(home, **changes), dsn) as built,
        AsyncExitStack() as stack,
    ):
        services = replace(built, authenticators=(Names(),))
        url = stack.enter_context(edge.showing(services))
        people = {
            name: await stack.enter_async_context(
                httpx2.AsyncClient(
                    base_url=url,
                    headers={"Authorization": f"Bearer {name}"},
                    timeout=30,
                    trust_env=False,
                )
            )
            for name in PEOPLE
        }
        yield Api(services=services, dsn=dsn, **people)


def data_of(answer: httpx2.Response, status: int = 200) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json()["data"]
