"""Creates one resource of every kind for a given owner, for the permission matrix tests."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

from penstock.graphs.snapshots.export_jobs import Submission
from penstock.graphs.snapshots.payloads import Entity, EntityExport
from penstock.reconcile.recipes import validation
from tests.api.test_mappings import body as mapping_body
from tests.reconcile.match_run import recipe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from penstock.reconcile.runs.service import RunService
    from tests.api.running_api import Api

FIXED = {
    "alias": "nothing",
    "catalog": "nothing",
    "db": "nothing",
    "decision_id": "999999",
    "evidence": "matched",
    "grantee": "oz",
    "job_id": "999999",
    "name": "nightly",
    "namespace": "nothing",
    "other": "2",
    "path": "query",
    "resource_id": "999999",
    "resource_type": "mapping",
    "schema": "nothing",
    "slug": "nothing",
    "table": "nothing",
    "version": "1",
}
"""Path parameters without an owner, or owned through an earlier parameter."""
RECIPE = recipe(rules=[{"name": "r", "conditions": [{"left": "a", "op": "eq", "right": "a"}]}])


class Things:
    """`await things.path("/api/mappings/{mapping_id}", "ann")`: the path of a mapping of ann's."""

    def __init__(self, api: Api, default_source: int) -> None:
        self._api = api
        self._source = default_source
        self._numbers = count(1)
        self._owned: dict[str, Callable[[str], Awaitable[str]]] = {
            "alias": self._data_source,
            "data_source_id": self._data_source,
            "instance_id": self._instance,
            "mapping_id": self._mapping,
            "recipe_id": self._recipe,
            "run_id": self._run,
            "snapshot_id": self._snapshot,
            "upload_id": self._upload,
            "username": self._user,
        }

    def kinds(self, path: str) -> list[str]:
        """The owned things that a path names."""
        named = re.findall(r"{(\w+)}", path)
        owned = [name for name in named if name in self._owned]
        return [*owned, "job_id"] if path.startswith("/api/exports/{job_id}") else owned

    async def path(self, path: str, owner: str) -> str:
        values = dict(FIXED)
        for name in self.kinds(path):
            values[name] = await (
                self._export(owner) if name == "job_id" else self._owned[name](owner)
            )
        if "{key_id}" in path:
            values["key_id"] = await self._key(values["username"])
        return path.format(**values)

    def nowhere(self, path: str) -> str:
        """The path of things that do not exist."""
        return re.sub(r"{\w+_id}", "999999", path).format(**FIXED, username="nobody")

    async def _mapping(self, owner: str) -> str:
        client = getattr(self._api, owner)
        response = await client.post("/api/mappings", json=mapping_body(edge_definitions=[]))
        assert response.status_code == 201, response.text
        return str(response.json()["data"]["id"])

    async def _snapshot(self, owner: str) -> str:
        snapshot = await self._api.graphs.snapshots.add(
            owner=owner, name=f"snapshot {next(self._numbers)}"
        )
        return str(snapshot.snapshot_id)

    async def _instance(self, owner: str) -> str:
        slug, place = f"thing-{next(self._numbers)}", self._api.graphs.instances.launcher.place
        return str(await self._api.instance(owner=owner, url_slug=slug, place=place))

    async def _data_source(self, owner: str) -> str:
        """A source on a closed port, with the owner's credentials."""
        source = await self._api.graphs.sources.add(
            name=f"source-{next(self._numbers)}",
            kind="mysql",
            owner=owner,
            config={"host": "127.0.0.1", "port": 9, "user": owner, "database": "shop"},
            secrets={"password": "not right"},
        )
        return str(source.data_source_id)

    async def _recipe(self, owner: str) -> str:
        recipe_id = f"recipe-{next(self._numbers)}"
        await self._reconciled.recipes.add(recipe_id, validation.read(RECIPE), owner=owner)
        return recipe_id

    async def _run(self, owner: str) -> str:
        run = await self._reconciled.runs.add(
            owner=owner, recipe=RECIPE, inputs={"left": {"files": []}, "right": {"files": []}}
        )
        await self._reconciled.runs.cancel(
            run.run_id, actor=owner
        )  # a stream of its events then has an end
        return str(run.run_id)

    async def _upload(self, owner: str) -> str:
        response = await getattr(self._api, owner).post(
            "/api/uploads?name=rows.csv", content=b"a,b\n1,2\n"
        )
        return str(response.json()["data"]["upload_id"])

    @property
    def _reconciled(self) -> RunService:
        assert self._api.services.reconciliation is not None
        return self._api.services.reconciliation.service

    async def _user(self, owner: str) -> str:
        return owner

    async def _key(self, username: str) -> str:
        response = await self._api.oz.post(f"/api/users/{username}/api-keys")
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    async def _export(self, owner: str) -> str:
        export = EntityExport(
            entity=Entity(job_type="node", name="Customer"),
            sql="SELECT id FROM customers",
            data_source_id=self._source,
        )
        snapshot = int(await self._snapshot(owner))
        [job] = await self._api.graphs.exports.start(snapshot, [Submission(wanted=export)])
        return str(job.job_id)
