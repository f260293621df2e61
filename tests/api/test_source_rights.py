"""Rights on another user's data source, case by case, and after
the right has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from prometheus_client import CollectorRegistry

from penstock.kit.errors import PermissionDenied
from tests.api.answers import error
from tests.api.running_api import Api, data_of, running_api
from tests.api.test_mappings import CUSTOMER
from tests.graphs.deployment import TOKEN, shop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.api.control_plane import Edge

ANALYSTS = ("ann", "ben", "cleo")
SIDE = {"source": "private", "table": "customers", "primary_key": ["id"]}
RULES = [{"name": "same", "conditions": [{"left": "id", "op": "eq", "right": "id"}]}]
RECIPE = {"name": "private", "sources": {"left": SIDE, "right": SIDE}, "rules": RULES}
WIDER = {"table": "purchases", "primary_key": ["item"]}
OTHER_QUERY = CUSTOMER | {"sql": "SELECT id, name, age FROM customers WHERE id < 5"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Private:
    """A source of ann's that is not the default, and a mapping and a recipe of hers on it."""

    api: Api
    source: int
    remote: int
    """Another source of ann's, one that reads nothing of the server itself, so that analysts may
    change it."""
    mapping: int
    recipe: str
    folder: Path

    def path(self, what: str) -> str:
        paths = {
            "source": f"/api/data-sources/{self.source}",
            "remote": f"/api/data-sources/{self.remote}",
            "mapping": f"/api/mappings/{self.mapping}",
            "recipe": f"/api/recipes/{self.recipe}",
        }
        return paths[what]

    async def share(self, what: str, grantee: str, role: str) -> None:
        if what == "source":
            await self.share("remote", grantee, role)
        data_of(await self.api.ann.put(f"{self.path(what)}/shares/{grantee}", json={"role": role}))

    async def unshare(self, what: str, grantee: str) -> None:
        data_of(await self.api.ann.delete(f"{self.path(what)}/shares/{grantee}"))


@pytest.fixture
async def private(database: str, edge: Edge, tmp_path: Path) -> AsyncIterator[Private]:
    (tmp_path / "data").mkdir()
    async with running_api(database, edge, tmp_path / "home") as api:
        for name, role in {**dict.fromkeys(ANALYSTS, "analyst"), "ada": "admin"}.items():
            added = await api.oz.post("/api/users", json={"username": name, "role": role})
            assert added.status_code == 201, added.text
        config = shop(tmp_path / "data", customers=10)
        source = await api.graphs.sources.add(
            name="private", kind="duckdb", owner="ann", config=config, secrets={}
        )
        body = {
            "name": "m",
            "node_definitions": [CUSTOMER],
            "data_source_id": source.data_source_id,
        }
        mapping = data_of(await api.ann.post("/api/mappings", json=body), 201)
        recipe = data_of(
            await api.ann.post("/api/recipes", json={"recipe": RECIPE | {"recipe_id": "r"}}), 201
        )
        nowhere = {"host": "127.0.0.1", "port": 9, "user": "ann", "database": "shop"}
        remote = await api.graphs.sources.add(
            name="remote", kind="mysql", owner="ann", config=nowhere, secrets={}
        )
        yield Private(
            api=api,
            source=source.data_source_id,
            remote=remote.data_source_id,
            mapping=mapping["id"],
            recipe=recipe["recipe_id"],
            folder=tmp_path,
        )


def actions(private: Private) -> dict[str, tuple[str, str, dict[str, Any] | None]]:
    source, mapping, recipe = (private.path(what) for what in ("source", "mapping", "recipe"))
    of_source: dict[str, Any] = {"data_source_id": private.source}
    changed_recipe = RECIPE | {"sources": {"left": SIDE | WIDER, "right": SIDE}}
    return {
        "read mapping": ("GET", mapping, None),
        "read recipe": ("GET", recipe, None),
        "browse": ("GET", f"{source}/browse", None),
        "columns": ("GET", f"{source}/schema?table=customers", None),
        "rows": ("GET", "/api/sources/private/preview?table=customers", None),
        "infer": ("POST", "/api/mappings/infer", of_source),
        "validate": (
            "POST",
            "/api/mappings/validate",
            of_source | {"node_definitions": [CUSTOMER]},
        ),
        "new mapping": (
            "POST",
            "/api/mappings",
            of_source | {"name": "n", "node_definitions": [CUSTOMER]},
        ),
        "copy mapping": ("POST", f"{mapping}/copy", {"name": "copy"}),
        "new recipe run": ("POST", "/api/runs", {"recipe": RECIPE}),
        "preview": ("POST", "/api/recipes/preview", {"recipe": RECIPE}),
        "run recipe on more": ("POST", "/api/runs", {"recipe_id": "r", "sources": {"left": WIDER}}),
        "snapshot": ("POST", "/api/snapshots", {"mapping_id": private.mapping, "name": "s"}),
        "instance": ("POST", "/api/instances", {"mapping_id": private.mapping, "name": "i"}),
        "run recipe": ("POST", "/api/runs", {"recipe_id": "r"}),
        "preview recipe": ("POST", "/api/recipes/preview", {"recipe_id": "r"}),
        "suggest of recipe": ("POST", "/api/recipes/suggest", {"recipe_id": "r"}),
        "explain recipe": ("GET", f"{recipe}/explain", None),
        "test": ("POST", f"{source}/test", None),
        "rename source": ("PUT", private.path("remote"), {"name": "remote"}),
        "rename mapping": ("PUT", mapping, {"name": "m", "change_description": "why"}),
        "query of mapping": (
            "PUT",
            mapping,
            {"node_definitions": [OTHER_QUERY], "change_description": "why"},
        ),
        "save recipe": ("PUT", recipe, {"recipe": RECIPE}),
        "recipe on more": ("PUT", recipe, {"recipe": changed_recipe}),
        "share source": ("PUT", f"{source}/shares/cleo", {"role": "use"}),
        "share mapping": ("PUT", f"{mapping}/shares/cleo", {"role": "use"}),
        "share recipe": ("PUT", f"{recipe}/shares/cleo", {"role": "use"}),
    }


READ = {"read mapping", "read recipe"}
OWN_USE = {
    "browse", "columns", "rows", "infer", "validate", "new mapping", "copy mapping",
    "new recipe run", "preview", "run recipe on more",
}  # fmt: skip
RUN_MAPPING = {"snapshot", "instance"}
RUN_RECIPE = {"run recipe", "preview recipe", "suggest of recipe", "explain recipe"}
USE = READ | OWN_USE | RUN_MAPPING | RUN_RECIPE
EDIT_SOURCE = {"test", "rename source"}
SHARE = {"share source", "share mapping", "share recipe"}
ALL = (
    USE
    | EDIT_SOURCE
    | SHARE
    | {"rename mapping", "query of mapping", "save recipe", "recipe on more"}
)
CELLS: dict[str, tuple[str, tuple[tuple[str, str], ...], set[str]]] = {
    "owner": ("ann", (), ALL),
    "admin": ("ada", (), ALL),
    "operator": ("oz", (), ALL),
    "other analyst": ("ben", (), READ),
    "source use": ("ben", (("source", "use"),), USE),
    "source edit": ("ben", (("source", "edit"),), USE | EDIT_SOURCE),
    "mapping use": ("ben", (("mapping", "use"),), READ | RUN_MAPPING),
    "mapping edit": ("ben", (("mapping", "edit"),), READ | RUN_MAPPING | {"rename mapping"}),
    "mapping edit, source use": (
        "ben",
        (("mapping", "edit"), ("source", "use")),
        USE | {"rename mapping", "query of mapping"},
    ),
    "recipe use": ("ben", (("recipe", "use"),), READ | RUN_RECIPE),
    "recipe edit": ("ben", (("recipe", "edit"),), READ | RUN_RECIPE | {"save recipe"}),
    "recipe edit, source use": (
        "ben",
        (("recipe", "edit"), ("source", "use")),
        USE | {"save recipe", "recipe on more"},
    ),
}


@pytest.mark.parametrize("cell", CELLS)
async def test_each_caller_may_do_what_the_decision_says_and_nothing_else(
    cell: str, private: Private
) -> None:
    who, shares, allowed = CELLS[cell]
    for what, role in shares:
        await private.share(what, who, role)
    client: httpx2.AsyncClient = getattr(private.api, who)
    done = {}
    for name, (method, path, body) in actions(private).items():
        answer = await client.request(method, path, json=body)
        assert answer.status_code in (200, 201, 202, 403, 422), (name, answer.text)
        assert "INTERNAL" not in answer.text, (name, answer.text)
        done[name] = answer.is_success
    assert {name for name, ok in done.items() if ok} == allowed


async def test_nobody_without_a_credential_does_any_of_it(private: Private) -> None:
    async with httpx2.AsyncClient(base_url=private.api.ann.base_url, trust_env=False) as nobody:
        for method, path, body in actions(private).values():
            error(await nobody.request(method, path, json=body), 401, "AUTHENTICATION_REQUIRED")


async def test_what_ended_is_gone_at_once_and_what_is_shared_with_everybody_is_everybodys(
    private: Private,
) -> None:
    browse = f"{private.path('source')}/browse"
    await private.share("source", "*", "use")
    data_of(await private.api.ben.get(browse))
    data_of(await private.api.cleo.get(browse))
    await private.unshare("source", "*")
    error(await private.api.ben.get(browse), 403, "PERMISSION_DENIED")
    shares = data_of(await private.api.ben.get(f"{private.path('source')}/shares"))
    assert shares == []
    assert data_of(await private.api.ann.delete(f"{private.path('source')}/shares/ben")) == {
        "deleted": False
    }


async def test_a_share_needs_a_user_and_a_known_role(private: Private) -> None:
    shares = f"{private.path('mapping')}/shares"
    error(
        await private.api.ann.put(f"{shares}/nobody", json={"role": "use"}),
        404,
        "RESOURCE_NOT_FOUND",
    )
    error(
        await private.api.ann.put(f"{shares}/ann", json={"role": "use"}), 422, "VALIDATION_FAILED"
    )
    error(
        await private.api.ann.put(f"{shares}/ben", json={"role": "own"}), 422, "VALIDATION_FAILED"
    )
    error(
        await private.api.ann.put("/api/mappings/999/shares/ben", json={"role": "use"}),
        404,
        "RESOURCE_NOT_FOUND",
    )
    edit = data_of(await private.api.ann.put(f"{shares}/BEN", json={"role": "edit"}))
    assert (edit["username"], edit["role"], edit["created_by"]) == ("ben", "edit", "ann")
    audit = data_of(
        await private.api.oz.get("/api/audit", params={"subject": f"mapping:{private.mapping}"})
    )
    assert audit[0]["action"] == "mapping.share"
    assert audit[0]["detail"] == {"role": "edit", "username": "ben"}


async def test_a_thing_has_two_hundred_shares_and_no_more(private: Private) -> None:
    await private.api.sql(
        "INSERT INTO penstock.share (resource_type, resource_id, username, role, created_by)"
        " SELECT 'recipe', 'r', 'user-' || n, 'use', 'ann' FROM generate_series(1, 199) n"
    )
    await private.share("recipe", "ben", "use")
    refused = await private.api.ann.put(
        f"{private.path('recipe')}/shares/cleo", json={"role": "use"}
    )
    error(refused, 409, "CONFLICT")
    await private.share("recipe", "ben", "edit")


async def test_shares_go_with_what_they_are_about(private: Private) -> None:
    await private.share("recipe", "ben", "edit")
    data_of(await private.api.ann.delete(private.path("recipe")))
    data_of(
        await private.api.cleo.post("/api/recipes", json={"recipe": RECIPE | {"recipe_id": "r"}}),
        201,
    )
    assert data_of(await private.api.ann.get(f"{private.path('recipe')}/shares")) == []
    await private.share("mapping", "ben", "use")
    await private.share("source", "ben", "use")
    data_of(await private.api.ann.delete(private.path("mapping")))
    data_of(await private.api.ann.delete(private.path("source")))
    data_of(await private.api.ann.delete(private.path("remote")))
    assert await private.api.sql("SELECT * FROM penstock.share") == []


async def test_a_right_that_was_granted_is_not_passed_on(private: Private) -> None:
    """ben may use ann's source and shares a mapping of his own on it: that lets cleo read the
    mapping only."""
    await private.share("source", "ben", "use")
    body = {"name": "b", "node_definitions": [CUSTOMER], "data_source_id": private.source}
    mapping = data_of(await private.api.ben.post("/api/mappings", json=body), 201)["id"]
    data_of(
        await private.api.ben.put(f"/api/mappings/{mapping}/shares/cleo", json={"role": "edit"})
    )
    ask = {"mapping_id": mapping, "name": "s"}
    error(await private.api.cleo.post("/api/snapshots", json=ask), 403, "PERMISSION_DENIED")
    data_of(await private.api.ben.post("/api/snapshots", json=ask), 201)


async def test_whoever_may_not_use_a_source_sees_neither_its_place_nor_how_its_test_ended(
    private: Private,
) -> None:
    data_of(await private.api.ann.post(f"{private.path('source')}/test"))
    for who, sees in (("ann", True), ("ada", True), ("ben", False)):
        client: httpx2.AsyncClient = getattr(private.api, who)
        [listed] = data_of(await client.get("/api/data-sources", params={"type": "duckdb"}))
        for shown in (listed, data_of(await client.get(private.path("source")))):
            assert shown["test_ok"] is True
            assert ((shown["config"] is not None), (shown["test_message"] is not None)) == (
                sees,
                sees,
            )
    await private.share("source", "ben", "use")
    assert data_of(await private.api.ben.get(private.path("source")))["test_message"].startswith(
        "DuckDB"
    )


async def test_the_schema_browser_shows_only_what_the_reader_may_use(private: Private) -> None:
    assert private.api.services.sources is not None
    await private.api.services.sources.cache.refresh(private.source)
    paths = [
        "/api/schema/catalogs",
        "/api/schema/search/tables?q=customers",
        "/api/schema/search/columns?q=age",
    ]
    below = ["/api/schema/catalogs/shop/schemas", "/api/schema/catalogs/shop/schemas/main/tables"]
    below.append("/api/schema/catalogs/shop/schemas/main/tables/customers/columns")
    for path in paths:
        assert data_of(await private.api.ann.get(path)), path
        assert data_of(await private.api.ada.get(path)), path
        assert data_of(await private.api.ben.get(path)) == [], path
    for path in below:
        assert data_of(await private.api.ann.get(path)), path
        error(await private.api.ben.get(path), 404, "RESOURCE_NOT_FOUND")
    await private.share("source", "ben", "use")
    for path in [*paths, *below]:
        assert data_of(await private.api.ben.get(path)), path


@pytest.mark.parametrize("shared", ["source", "mapping"])
async def test_a_queued_export_gets_no_credentials_after_the_right_ended(
    shared: str, private: Private
) -> None:
    await private.share(shared, "ben", "use")
    data_of(
        await private.api.ben.post(
            "/api/snapshots", json={"mapping_id": private.mapping, "name": "s"}
        ),
        201,
    )
    async with _worker(private.api) as worker:
        job = await _claim(worker, "export")
        body = {"attempt_id": job["attempt_id"]}
        assert data_of(await worker.post(f"/{job['job_id']}/source", json=body))["type"] == "duckdb"
        await private.unshare(shared, "ben")
        refused = error(
            await worker.post(f"/{job['job_id']}/source", json=body), 403, "PERMISSION_DENIED"
        )
        assert "ben" in refused["message"]


@pytest.mark.parametrize("shared", ["source", "recipe"])
async def test_a_queued_run_gets_no_credentials_and_its_evidence_closes_after_the_right_ended(
    shared: str, private: Private
) -> None:
    await private.share(shared, "ben", "use")
    run = data_of(await private.api.ben.post("/api/runs", json={"recipe_id": "r"}), 202)["run_id"]
    async with _worker(private.api) as worker:
        job = await _claim(worker, "stage")
        body = {"attempt_id": job["attempt_id"]}
        data_of(await worker.post(f"/{job['job_id']}/source", json=body))
        await private.unshare(shared, "ben")
        error(await worker.post(f"/{job['job_id']}/source", json=body), 403, "PERMISSION_DENIED")
    for evidence in ("manifest", "report", "evidence/matched"):
        error(await private.api.ben.get(f"/api/runs/{run}/{evidence}"), 403, "PERMISSION_DENIED")
        assert (await private.api.ada.get(f"/api/runs/{run}/{evidence}")).status_code == 409
    data_of(await private.api.ben.post(f"/api/runs/{run}/cancel"))
    error(await private.api.ben.post(f"/api/runs/{run}/retry"), 403, "PERMISSION_DENIED")


async def test_a_run_opens_its_sources_on_a_control_plane_without_graphs(
    private: Private, edge: Edge
) -> None:
    data_of(await private.api.ann.post("/api/runs", json={"recipe_id": "r"}), 202)
    alone = replace(private.api.services, graphs=None, registry=CollectorRegistry())
    with edge.showing(alone):
        async with _worker(private.api) as worker:
            job = await _claim(worker, "stage")
            body = {"attempt_id": job["attempt_id"]}
            opened = await worker.post(f"/{job['job_id']}/source", json=body)
    assert data_of(opened)["type"] == "duckdb"


async def test_no_payload_opens_a_source_that_whoever_asked_for_the_job_may_not_use(
    private: Private,
) -> None:
    """Only a clean-up, known by its kind, has another job's payload in its own; a run opens what it
    reads from."""
    own = shop(private.folder, customers=2)
    await private.api.graphs.sources.add(
        name="bens", kind="duckdb", owner="ben", config=own, secrets={}
    )
    side = SIDE | {"source": "bens"}
    recipe = RECIPE | {"sources": {"left": side, "right": side}}
    run = data_of(await private.api.ben.post("/api/runs", json={"recipe": recipe}), 202)["run_id"]
    source = {"data_source_id": private.source}
    payloads: list[dict[str, Any]] = [
        source,
        {"payload": source},
        source | {"payload": {}},
        {"run_id": run} | source,
        {"run_id": run, "side": "neither"} | source,
    ]
    async with _worker(private.api) as worker:
        for number, payload in enumerate(payloads):
            spec = {
                "kind": "export",
                "queue": f"q{number}",
                "payload": payload,
                "created_by": "ben",
            }
            data_of(await worker.post("/enqueue", json={"jobs": [spec]}))
            job = await _claim(worker, f"q{number}", name=f"w{number}")
            body = {"attempt_id": job["attempt_id"]}
            answer = await worker.post(f"/{job['job_id']}/source", json=body)
            assert answer.status_code in (403, 404), (payload, answer.text)
        staged = await _claim(worker, "stage")
        opened = await worker.post(
            f"/{staged['job_id']}/source", json={"attempt_id": staged["attempt_id"]}
        )
        assert data_of(opened)["config"] == own


async def test_a_scheduled_run_is_not_started_after_its_owner_lost_the_right(
    private: Private,
) -> None:
    await private.share("source", "ben", "use")
    data_of(
        await private.api.ben.post("/api/recipes", json={"recipe": RECIPE | {"recipe_id": "b"}}),
        201,
    )
    data_of(await private.api.ben.put("/api/recipes/b/schedule", json={"cron": "0 3 * * *"}))
    for number, status in ((1, 200), (2, 422)):
        spec = {"kind": "run_start", "payload": {"recipe_id": "b", "parameters": {}}}
        data_of(await private.api.oz.post("/api/jobs", json=spec), 201)
        async with _worker(private.api) as worker:
            job = await _claim(worker, "stage", name=f"w{number}", kind="run_start")
        body = {key: job[key] for key in ("job_id", "attempt_id")} | {"recipe_id": "b"}
        headers = {"Authorization": f"Bearer {TOKEN}", "X-Component": "worker"}
        async with httpx2.AsyncClient(
            base_url=private.api.ann.base_url, headers=headers, trust_env=False
        ) as client:
            started = await client.post("/api/internal/runs/start", json=body)
        assert started.status_code == status, started.text
        await private.unshare("source", "ben")


async def test_an_existing_snapshot_makes_no_instance_after_the_right_ended(
    private: Private,
) -> None:
    await private.share("mapping", "ben", "use")
    snapshot = data_of(
        await private.api.ben.post(
            "/api/snapshots", json={"mapping_id": private.mapping, "name": "s"}
        ),
        201,
    )["id"]
    ask = {"snapshot_id": snapshot, "name": "i"}
    data_of(await private.api.ben.post("/api/instances", json=ask), 201)
    error(await private.api.cleo.post("/api/instances", json=ask), 403, "PERMISSION_DENIED")
    await private.unshare("mapping", "ben")
    error(await private.api.ben.post("/api/instances", json=ask), 403, "PERMISSION_DENIED")
    data_of(await private.api.ann.post("/api/instances", json=ask), 201)


async def test_after_a_source_is_dropped_its_snapshots_are_its_owners(private: Private) -> None:
    rights, records = private.api.graphs.rights, private.api.graphs.sources
    await private.share("source", "ben", "use")
    snapshot = await private.api.snapshot(owner="ben", data_source_id=private.source)
    await rights.check_snapshot(snapshot, "ben")
    await private.api.graphs.mappings.drop(private.mapping, actor="ann")
    await records.drop(private.source)
    await rights.check_snapshot(snapshot, "ann")
    await rights.check_snapshot(snapshot, "ada")
    for who in ("ben", "cleo"):
        with pytest.raises(PermissionDenied):
            await rights.check_snapshot(snapshot, who)


def _worker(api: Api) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Component": "worker"}
    base = f"{api.ann.base_url}/api/internal/jobs"
    return httpx2.AsyncClient(base_url=base, headers=headers, timeout=30, trust_env=False)


async def _claim(
    worker: httpx2.AsyncClient, queue: str, *, name: str = "w", kind: str | None = None
) -> dict[str, Any]:
    body = {"worker": name, "queues": [queue], "limit": 10}
    jobs: list[dict[str, Any]] = data_of(await worker.post("/claim", json=body))["jobs"]
    return next(job for job in jobs if kind in (None, job["kind"]))


async def test_a_user_has_as_many_snapshots_and_runs_under_way_as_allowed_and_not_one_more(
    database: str, edge: Edge, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    limits = {"active_snapshots_per_user": 2, "active_runs_per_user": 2}
    async with running_api(database, edge, tmp_path / "home", **limits) as api:
        config = shop(tmp_path / "data", customers=10)
        source = await api.graphs.sources.add(
            name="private", kind="duckdb", owner="ada", config=config, secrets={}
        )
        await api.graphs.sources.make_default(source.data_source_id)
        body = {"name": "m", "node_definitions": [CUSTOMER]}
        mapping = data_of(await api.ann.post("/api/mappings", json=body), 201)["id"]
        for path, ask, status in (
            ("/api/snapshots", {"mapping_id": mapping, "name": "s"}, 201),
            ("/api/runs", {"recipe": RECIPE}, 202),
        ):
            begun = [data_of(await api.ann.post(path, json=ask), status) for _ in range(2)]
            refused = error(await api.ann.post(path, json=ask), 409, "CONCURRENCY_LIMIT")
            assert (refused["details"]["current_count"], refused["details"]["max_allowed"]) == (
                2,
                2,
            )
            data_of(await api.ben.post(path, json=ask), status)
            number = begun[0].get("id") or begun[0]["run_id"]
            data_of(await api.ann.post(f"{path}/{number}/cancel"))
            data_of(await api.ann.post(path, json=ask), status)
