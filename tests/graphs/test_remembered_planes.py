"""What two control planes remember of keys and instances holds no longer than it is true.

The time that it is remembered for is made endless, so that only what is heard of ends it.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2
import pytest

from penstock.api.serving.server import bind, listening
from penstock.graphs.instances.model import InstanceStatus
from penstock.kit import cache
from penstock.kit.errors import NotFound
from penstock.wiring.control_plane import build_control_plane
from tests.graphs.deployment import until
from tests.graphs.fleet import sailing, sink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from penstock.api.services import Services
    from tests.graphs.fleet import Fleet

SELDOM = 3600.0


@pytest.fixture
async def fleet(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Fleet]:
    monkeypatch.setitem(cache.InvalidatedCache.__init__.__kwdefaults__, "seconds", SELDOM)
    async with sailing(database, tmp_path / "home") as it:
        yield it
        await sink(it.launcher)


@asynccontextmanager
async def another(fleet: Fleet) -> AsyncIterator[tuple[Services, httpx2.AsyncClient]]:
    """A second control plane of the same deployment."""
    with bind("127.0.0.1", 0) as listener:
        async with (
            build_control_plane(fleet.settings, fleet.dsn, launcher=fleet.launcher) as services,
            listening(services, listener) as url,
            httpx2.AsyncClient(base_url=url, timeout=60, trust_env=False) as http,
        ):
            await services.store.notifier.listening.wait()
            yield services, http


async def key_of(fleet: Fleet, username: str) -> dict[str, str]:
    operator = {"Authorization": "Bearer operator"}
    body = {"username": username, "email": f"{username}@example.org"}
    assert (await fleet.http.post("/api/users", json=body, headers=operator)).status_code == 201
    path = f"/api/users/{username}/api-keys"
    key = (await fleet.http.post(path, json={"name": "k"}, headers=operator)).json()["key"]
    return {"Authorization": f"Bearer {key}"}


async def test_a_revoked_key_stops_at_once_here_and_as_soon_as_it_is_heard_of_elsewhere(
    fleet: Fleet,
) -> None:
    operator = {"Authorization": "Bearer operator"}
    await fleet.services.store.notifier.listening.wait()
    async with another(fleet) as (_, other):
        mine = await key_of(fleet, "ann")
        for http in (fleet.http, other, fleet.http, other):
            assert (await http.get("/api/mappings", headers=mine)).status_code == 200
        revoked = await fleet.http.delete("/api/users/ann/api-keys", headers=operator)
        assert revoked.status_code == 200
        assert (await fleet.http.get("/api/mappings", headers=mine)).status_code == 401

        async def is_refused() -> bool:
            return (await other.get("/api/mappings", headers=mine)).status_code == 401

        await until(is_refused)


async def test_a_deactivated_user_is_refused_at_once_where_notifications_cannot_be_heard(
    fleet: Fleet,
) -> None:
    operator = {"Authorization": "Bearer operator"}
    async with another(fleet) as (services, other):
        mine = await key_of(fleet, "bea")
        for _ in range(3):
            assert (await other.get("/api/mappings", headers=mine)).status_code == 200
        await services.store.notifier.stop()
        gone = await fleet.http.delete("/api/users/bea", headers=operator)
        assert gone.status_code == 200
        assert (await other.get("/api/mappings", headers=mine)).status_code == 401


async def test_a_role_that_is_taken_away_is_gone_with_the_answer(fleet: Fleet) -> None:
    operator = {"Authorization": "Bearer operator"}
    await fleet.services.store.notifier.listening.wait()
    mine = await key_of(fleet, "cid")
    raised = await fleet.http.put("/api/users/cid/role", json={"role": "admin"}, headers=operator)
    assert raised.status_code == 200
    for _ in range(3):
        assert (await fleet.http.get("/api/jobs", headers=mine)).status_code == 200
    await fleet.http.put("/api/users/cid/role", json={"role": "analyst"}, headers=operator)
    assert (await fleet.http.get("/api/jobs", headers=mine)).status_code == 403


async def test_an_instance_that_ends_is_gone_with_the_answer(fleet: Fleet) -> None:
    await fleet.services.store.notifier.listening.wait()
    server = await fleet.running()
    for _ in range(2):
        assert (await fleet.through(server, "/health")).status_code == 200
    await fleet.ask("POST", f"/api/instances/{server['id']}/terminate", force=True)
    assert (await fleet.through(server, "/health")).status_code == 404


async def test_an_instance_that_ends_is_reached_by_nobody_any_more(fleet: Fleet) -> None:
    await fleet.services.store.notifier.listening.wait()
    server = await fleet.running()
    async with another(fleet) as (services, _):
        assert services.graphs is not None
        elsewhere = services.graphs.instances.store
        for _ in range(2):
            assert (await fleet.through(server, "/health")).status_code == 200
            assert (await elsewhere.by_slug(server["url_slug"])).status is InstanceStatus.RUNNING
        path = f"/api/instances/{server['id']}/terminate"
        await fleet.ask("POST", path, expect=200, force=True)
        assert (await fleet.through(server, "/health")).status_code == 404

        async def is_known_to_end() -> bool:
            try:
                instance = await elsewhere.by_slug(server["url_slug"])
            except NotFound:
                return True
            return instance.status is not InstanceStatus.RUNNING

        await until(is_known_to_end)
