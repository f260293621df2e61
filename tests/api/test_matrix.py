"""Every cell of the permission matrix, over HTTP.

Generated from the served routes, so a route without a row, or an untestable row, fails.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from fastapi import APIRouter, FastAPI

from penstock.api import permissions
from penstock.api.permissions import MATRIX, OPS, Permit, Row
from penstock.api.requests.idempotency import OTHER_PROTOCOLS, WRITES
from penstock.api.requests.request_bodies import StrictRoute
from penstock.kit.errors import Internal
from tests.api.answers import error
from tests.api.resources import RECIPE, Things
from tests.api.running_api import Api, running_api
from tests.graphs.deployment import TOKEN, shop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.api.control_plane import Edge

ROLES = {"analyst": "ann", "admin": "ada", "ops": "oz"}
SOMEBODY_ELSE = "ben"
OPEN_TO_BROWSERS = {"GET /login": (401,), "POST /logout": (204,)}
"""A link must be shown, and whoever is not signed in may sign out."""
FOR_BROWSERS = {*OPEN_TO_BROWSERS, "POST /api/login-links"}
"""Between browsers and the command line, and in no description."""
BODIES: dict[str, dict[str, Any] | None] = {
    "POST /api/users/{username}/api-keys": {},
    "PUT /api/mappings/{mapping_id}": {"change_description": "because", "name": "renamed"},
    "PUT /api/mappings/{mapping_id}/lifecycle": {"ttl": "PT1H"},
    "POST /api/mappings/{mapping_id}/versions/{version}/restore": None,
    "PUT /api/snapshots/{snapshot_id}": {"name": "renamed"},
    "PUT /api/snapshots/{snapshot_id}/lifecycle": {"ttl": "PT1H"},
    "POST /api/snapshots/{snapshot_id}/retry": None,
    "POST /api/snapshots/{snapshot_id}/cancel": None,
    "PUT /api/instances/{instance_id}": {"name": "renamed"},
    "POST /api/instances/{instance_id}/terminate": None,
    "PUT /api/instances/{instance_id}/lifecycle": {"ttl": "PT1H"},
    "PUT /api/instances/{instance_id}/cpu": {"cpu_cores": 2},
    "PUT /api/instances/{instance_id}/memory": {"memory_gb": 4},
    "POST /api/instances/{instance_id}/suspend": None,
    "POST /api/instances/{instance_id}/resume": None,
    "PUT /api/data-sources/{data_source_id}": {"name": "renamed"},
    "POST /api/data-sources/{data_source_id}/test": None,
    "PUT /api/data-sources/{data_source_id}/shares/{grantee}": {"role": "use"},
    "PUT /api/mappings/{mapping_id}/shares/{grantee}": {"role": "use"},
    "PUT /api/recipes/{recipe_id}/shares/{grantee}": {"role": "edit"},
    "POST /api/exports/{job_id}/retry": None,
    "POST /api/exports/{job_id}/cancel": None,
    "PUT /api/recipes/{recipe_id}": {"recipe": RECIPE},
    "POST /api/recipes/{recipe_id}/decisions": {
        "kind": "match",
        "left_key": ["1"],
        "right_key": ["2"],
    },
    "PUT /api/recipes/{recipe_id}/items": {"side": "left", "key": ["1"], "label": "odd"},
    "PUT /api/recipes/{recipe_id}/schedule": {"cron": "0 3 * * *"},
    "POST /api/sources/{alias}/load-scoped": {"table": "orders"},
    "POST /api/runs/{run_id}/cancel": None,
    "POST /api/runs/{run_id}/retry": None,
}
"""Of every write that may be about one's own things: a body with which it would be done."""
QUERIES = {
    "GET /api/data-sources/{data_source_id}/schema": {"table": "orders"},
    "GET /api/sources/{alias}/preview": {"table": "orders"},
}


@pytest.fixture(scope="module")
async def api(
    lasting_database: str, edge: Edge, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Api]:
    home = tmp_path_factory.mktemp("home")
    lake = {"lake": {"warehouse": (home / "warehouse").as_uri()}}
    async with running_api(lasting_database, edge, home, catalogs=lake) as api:
        for name, role in (("ann", "analyst"), ("ben", "analyst"), ("ada", "admin"), ("oz", "ops")):
            assert (
                await api.oz.post("/api/users", json={"username": name, "role": role})
            ).status_code == 201
        yield api


@pytest.fixture(scope="module")
def app(api: Api, edge: Edge) -> FastAPI:
    assert edge.app is not None
    return edge.app


@pytest.fixture(scope="module")
async def things(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Things:
    folder: Path = tmp_path_factory.mktemp("shop")
    source = await api.graphs.sources.add(
        name="shop", kind="duckdb", owner="ada", config=shop(folder), secrets={}
    )
    await api.graphs.sources.make_default(source.data_source_id)
    return Things(api, source.data_source_id)


@pytest.fixture(scope="module")
async def nobody(api: Api) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=api.ann.base_url, timeout=30, trust_env=False) as client:
        yield client


@pytest.fixture(scope="module")
async def own(api: Api) -> int:
    """The instance of a graph server."""
    return await api.instance()


def rows(kind: str) -> list[str]:
    return [name for name, row in MATRIX.items() if row.kind == kind]


async def test_every_route_has_a_row_and_every_row_a_route(app: FastAPI) -> None:
    served = permissions.names(app.state.routes)
    assert set(served) == set(MATRIX)


async def test_every_public_write_takes_an_idempotency_key(app: FastAPI) -> None:
    for name, route in permissions.names(app.state.routes).items():
        method, path = name.split(" ")
        public = path.startswith("/api/") and not path.startswith(OTHER_PROTOCOLS)
        if public and MATRIX[name].kind == "role" and method in WRITES:
            assert isinstance(route, StrictRoute), name


async def test_nothing_is_served_that_the_description_does_not_show(app: FastAPI) -> None:
    described = {
        f"{method.upper()} {path}"
        for path, operations in app.openapi()["paths"].items()
        for method in operations
    }
    proxied = {name for name in MATRIX if name.split(" ")[1].startswith("/wrapper/")}
    assert described == set(MATRIX) - proxied - FOR_BROWSERS


@pytest.mark.parametrize("name", rows("role"))
async def test_people(name: str, api: Api, things: Things, nobody: httpx2.AsyncClient) -> None:
    method, path = name.split(" ")
    refused = await nobody.request(method, things.nowhere(path))
    error(refused, 401, "AUTHENTICATION_REQUIRED")
    assert refused.headers["www-authenticate"] == "Bearer"
    error(
        await nobody.request(method, things.nowhere(path), headers=bearer("wrong")),
        401,
        "INVALID_TOKEN",
    )
    for role, who in ROLES.items():
        for whose in (who, SOMEBODY_ELSE):
            await _try(name, role, who, whose, api, things)


async def _try(name: str, role: str, who: str, whose: str, api: Api, things: Things) -> None:
    method, path = name.split(" ")
    row = MATRIX[name]
    right = getattr(row, role)
    target = (
        things.nowhere(path)
        if right == "no" or not things.kinds(path)
        else await things.path(path, whose)
    )
    client: httpx2.AsyncClient = getattr(api, who)
    answer = await client.request(method, target, json=_body(name, row), params=QUERIES.get(name))
    cell = f"{name} as {role} on what is {whose}'s: {answer.status_code} {answer.text[:300]}"
    if right == "no" or (right == "own" and whose != who):
        assert answer.status_code == 403, cell
        error(answer, 403, "PERMISSION_DENIED")
        return
    assert answer.status_code not in (401, 403, 500), cell
    if right == "own":
        assert answer.status_code != 422, f"It was not really tried: {cell}"
    if things.kinds(path) == re.findall(r"{(\w+)}", path):
        assert answer.status_code != 404, f"It was not really tried: {cell}"


def _body(name: str, row: Row) -> dict[str, Any] | None:
    method = name.split(" ")[0]
    if "own" in (row.analyst, row.admin, row.ops) and method in ("POST", "PUT", "PATCH"):
        assert name in BODIES, f"What is a good body of {name}? Add one to BODIES."
    return BODIES.get(name)


@pytest.mark.parametrize("name", rows("internal"))
async def test_processes(
    name: str, own: int, api: Api, things: Things, nobody: httpx2.AsyncClient
) -> None:
    method, path = name.split(" ")
    row = MATRIX[name]
    tokens = api.services.instance_tokens
    assert tokens is not None
    target = things.nowhere(path.replace("{instance_id}", str(own)))

    async def ask(token: str, component: str | None) -> httpx2.Response:
        headers = bearer(token) | ({} if component is None else {"X-Component": component})
        return await nobody.request(method, target, headers=headers)

    error(
        await nobody.request(method, target, headers={"X-Component": "worker"}),
        401,
        "AUTHENTICATION_REQUIRED",
    )
    for person in (*ROLES.values(), "wrong"):
        error(await ask(person, "worker"), 401, "INVALID_TOKEN")
    for component in ("stranger", None):
        error(await ask(TOKEN, component), 401, "INVALID_COMPONENT")
    error(await ask(TOKEN, "wrapper"), 403, "PERMISSION_DENIED")
    error(await ask(tokens.mint(own), "worker"), 403, "PERMISSION_DENIED")
    error(await ask(tokens.mint(own + 1), "wrapper"), 403, "PERMISSION_DENIED")
    assert (await ask(TOKEN, "worker")).status_code not in (401, 403, 500), name
    wrapper = await ask(tokens.mint(own), "wrapper")
    assert (wrapper.status_code == 403) == ("wrapper" not in row.components), (name, wrapper.text)
    assert wrapper.status_code not in (401, 500), name


@pytest.mark.parametrize("name", rows("open"))
async def test_anybody(name: str, nobody: httpx2.AsyncClient) -> None:
    method, path = name.split(" ")
    answer = await nobody.request(
        method, path, json={"username": "eve"} if method == "POST" else None
    )
    allowed = OPEN_TO_BROWSERS.get(name) or ((200,) if method == "GET" else (401, 409))
    assert answer.status_code in allowed, (name, answer.text)


async def test_a_route_without_a_row_or_without_its_question_is_not_served() -> None:
    router = APIRouter()

    @router.get("/api/unheard-of")
    async def unheard(_: Permit) -> None: ...

    @router.get("/api/jobs")
    async def careless() -> None: ...

    with pytest.raises(Internal, match="no row"):
        permissions.check([router.routes[0]])
    with pytest.raises(Internal, match="does not enforce"):
        permissions.check([router.routes[1]])


RULES: list[tuple[str, Row | None]] = [
    (r"(GET|PUT) /api/config/.*", OPS),
    (r"GET /api/cluster/.*", OPS),
    (r"\w+ /api/ops/.*", OPS),
    (r"DELETE /api/admin/resources/bulk", permissions.ADMIN_ONLY),
    (r"POST /api/schema/admin/refresh|GET /api/schema/stats", permissions.ADMINS),
    (r"(GET|POST) /api/users|(PUT|DELETE) /api/users/{username}(/role)?", permissions.ADMINS),
    (r"GET /api/(mappings|snapshots|instances)(/.*)?", permissions.EVERYBODY),
    (
        r"POST /api/(mappings|snapshots|instances)(/from-mapping|/{\w+}/copy|/validate|/infer)?",
        permissions.EVERYBODY,
    ),
    (
        r"(PUT|DELETE) /api/(mappings|snapshots|instances|data-sources)/{\w+}"
        r"(/lifecycle|/cpu|/memory|/shares/{\w+})?",
        permissions.OWNER,
    ),
    (
        r"POST /api/(snapshots|instances)/{\w+}/(retry|cancel|terminate|suspend|resume)",
        permissions.OWNER,
    ),
]
"""What the contract says in words, so that a slip of the table is seen."""


def test_the_table_says_what_the_contract_says() -> None:
    for pattern, row in RULES:
        routes = [name for name in MATRIX if re.fullmatch(pattern, name)]
        assert routes, pattern
        assert {name for name in routes if MATRIX[name] != row} == set(), pattern


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
