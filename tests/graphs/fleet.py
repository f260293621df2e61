"""A control plane that runs graph servers: the real launcher, real processes, and a stand-in for
what they run."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import httpx2

from penstock.api.callers.identity import Identity, Role
from penstock.api.serving.server import bind, listening
from penstock.graphs.mappings.definition import Definitions, NodeDefinition, Property
from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.kit.db import Db
from penstock.launchers.subprocess import SubprocessLauncher
from penstock.wiring.control_plane import build_control_plane
from tests.graphs.deployment import connected, settings, until
from tests.servers import graph_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from penstock.api.services import Graphs, InstanceServices, Services
    from penstock.graphs.instances.model import Instance
    from penstock.kit.db import Tx
    from penstock.launchers.contract import Launcher
    from penstock.wiring.settings import Settings
    from tests.launchers.conformance import Cluster

PEOPLE = {"ada": Role.ANALYST, "bob": Role.ANALYST, "eve": Role.ADMIN, "olga": Role.OPS}
GRAPH = Definitions(
    nodes=(
        NodeDefinition(
            label="Person", sql="SELECT 1 AS id", primary_key=Property(name="id", type="INT64")
        ),
    )
)


class Names:
    """Whoever says a name here is that person."""

    async def identify(self, token: str) -> Identity | None:
        role = PEOPLE.get(token)
        return None if role is None else Identity(username=token, role=role, via="test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    services: Services
    settings: Settings
    http: httpx2.AsyncClient
    control: Path
    launcher: Launcher
    dsn: str

    @property
    def graphs(self) -> Graphs:
        assert self.services.graphs is not None
        return self.services.graphs

    @property
    def instances(self) -> InstanceServices:
        return self.graphs.instances

    def tell(self, **fields: Any) -> None:
        """What the next graph servers do."""
        tell(self.control, **fields)

    async def ask(
        self, method: str, path: str, *, who: str = "ada", expect: int = 200, **body: Any
    ) -> Any:
        headers = {"Authorization": f"Bearer {who}"}
        answer = await self.http.request(method, path, json=body or None, headers=headers)
        assert answer.status_code == expect, answer.text
        document = answer.json()
        return document["data"] if "data" in document else document.get("error", document)

    async def mapping(self) -> int:
        return (
            await self.graphs.mappings.add(owner="ada", name="people", definitions=GRAPH)
        ).mapping_id

    async def snapshot(
        self,
        *,
        ready: bool = True,
        size: int = 1000,
        mapping_id: int | None = None,
        data_source_id: int | None = None,
    ) -> int:
        """Of a mapping of its own; its files are never read by the stand-in."""
        store = self.graphs.snapshots
        mapping_id = mapping_id or await self.mapping()
        source = data_source_id or await self._everybodys_source()
        snapshot = await store.add(
            owner="ada",
            name="snap",
            mapping_id=mapping_id,
            mapping_version=1,
            data_source_id=source,
        )
        async with self.transaction() as tx:
            await store.move(
                tx, await store.lock(tx, snapshot.snapshot_id), SnapshotStatus.CREATING
            )
        if ready:
            await self.finish(snapshot.snapshot_id, size=size)
        return snapshot.snapshot_id

    async def _everybodys_source(self) -> int:
        """The default one; what it has is never read."""
        sources = self.graphs.sources
        default = await sources.default()
        if default is None:
            source = await sources.add(
                name="default", kind="duckdb", owner="ada", config={}, secrets={}
            )
            default = await sources.make_default(source.data_source_id)
        return default.data_source_id

    async def finish(self, snapshot_id: int, *, size: int = 1000) -> None:
        store = self.graphs.snapshots
        async with self.transaction() as tx:
            locked = await store.lock(tx, snapshot_id)
            await store.move(
                tx,
                locked,
                SnapshotStatus.READY,
                size_bytes=size,
                node_counts={"Person": 3},
                edge_counts={},
            )

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Tx]:
        async with Db(self.dsn, size=1) as db, db.transaction() as tx:
            yield tx

    async def create(self, *, who: str = "ada", expect: int = 201, **body: Any) -> Any:
        if not body.keys() & {"snapshot_id", "mapping_id"}:
            body["snapshot_id"] = await self.snapshot()
        return await self.ask(
            "POST", "/api/instances", who=who, expect=expect, **({"name": "mine"} | body)
        )

    async def running(self, *, who: str = "ada", **body: Any) -> Any:
        instance = await self.create(who=who, **body)
        return await self.reaches(instance["id"], "running")

    async def reaches(self, instance_id: int, *statuses: str, within: float = 20.0) -> Any:
        state: dict[str, Any] = {}

        async def there() -> bool:
            nonlocal state
            state = await self.ask("GET", f"/api/instances/{instance_id}", who="olga")
            assert state["status"] in statuses or state["status"] != "failed", state
            return state["status"] in statuses

        await until(there, within=within)
        return state

    async def row(self, instance_id: int) -> Instance:
        return await self.instances.store.get(instance_id)

    async def gone(self, instance_id: int) -> None:
        async def is_it() -> bool:
            answer = await self.http.get(
                f"/api/instances/{instance_id}", headers={"Authorization": "Bearer ada"}
            )
            return answer.status_code == 404

        await until(is_it, within=20)

    async def through(
        self,
        state: dict[str, Any],
        path: str,
        *,
        who: str = "ada",
        method: str = "GET",
        **fields: Any,
    ) -> Any:
        """A request to a graph server, by the proxy."""
        headers = {"Authorization": f"Bearer {who}"} | fields.pop("headers", {})
        return await self.http.request(
            method, f"/wrapper/{state['url_slug']}{path}", headers=headers, **fields
        )


def tell(control: Path, **fields: Any) -> None:
    """All at once: servers that hold read it over and over."""
    draft = control.with_suffix(".new")
    draft.write_text(json.dumps(fields))
    draft.replace(control)


def stand_in(control: Path) -> tuple[str, ...]:
    return (sys.executable, "-I", graph_server.__file__, str(control))


@asynccontextmanager
async def sailing(
    dsn: str,
    home: Path,
    *,
    command: tuple[str, ...] | None = None,
    cluster: Cluster | None = None,
    **changes: Any,
) -> AsyncIterator[Fleet]:
    """Graph servers are processes, or pods of a cluster."""
    home.mkdir(exist_ok=True, parents=True)
    control = home / "control.json"
    if not control.exists():
        tell(control)
    command = command or stand_in(control)
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        chosen: Launcher | None = None
        if cluster is None:
            chosen = SubprocessLauncher(home / "instances", command=command)
        else:
            changes = cluster.control_plane_settings(home, port, command) | changes
        config = settings(home, port=port, **changes)
        async with build_control_plane(config, dsn, launcher=chosen) as built:
            services = replace(built, authenticators=(*built.authenticators, Names()))
            assert services.graphs is not None
            async with (
                listening(services, listener) as url,
                httpx2.AsyncClient(base_url=url, timeout=60) as http,
            ):
                yield Fleet(
                    services=services,
                    settings=config,
                    http=http,
                    control=control,
                    launcher=services.graphs.instances.launcher,
                    dsn=dsn,
                )


async def sink(launcher: Launcher) -> None:
    """Nothing outlives its test."""
    for process in await launcher.list():
        await launcher.stop(process.handle, grace=0)
        await launcher.remove(process.handle)


__all__ = ["Fleet", "connected", "sailing", "sink", "stand_in", "tell"]
