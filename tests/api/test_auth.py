"""Who may do what, cell by cell. A route that is not in the table fails the build."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx2

from penstock.api.app import create_app
from tests.api.plane import ADMIN, ANALYST, OPERATOR, SERVICE, plane

if TYPE_CHECKING:
    from penstock.api.parts import Parts
    from tests.api.plane import Edge

IDENTITIES: dict[str, dict[str, str]] = {
    "anonymous": {},
    "garbage": {"Authorization": "Bearer wrong"},
    "basic": {"Authorization": "Basic b3BlcmF0b3I6eA=="},
    "analyst": {"Authorization": f"Bearer {ANALYST}"},
    "admin": {"Authorization": f"Bearer {ADMIN}"},
    "ops": {"Authorization": f"Bearer {OPERATOR}"},
    "worker": {"Authorization": f"Bearer {SERVICE}", "X-Component": "worker"},
    "wrapper": {"Authorization": f"Bearer {SERVICE}", "X-Component": "wrapper"},
    "stranger": {"Authorization": f"Bearer {SERVICE}", "X-Component": "stranger"},
    "nameless": {"Authorization": f"Bearer {SERVICE}"},
    "ops as worker": {"Authorization": f"Bearer {OPERATOR}", "X-Component": "worker"},
}
EVERYBODY = set(IDENTITIES)
MATRIX: dict[tuple[str, str], set[str]] = {
    ("GET", "/health"): EVERYBODY,
    ("GET", "/ready"): EVERYBODY,
    ("GET", "/metrics"): EVERYBODY,
    ("GET", "/api/jobs"): {"admin", "ops", "ops as worker"},
    ("POST", "/api/jobs"): {"ops", "ops as worker"},
    ("GET", "/api/jobs/{job_id}"): {"admin", "ops", "ops as worker"},
    ("POST", "/api/jobs/{job_id}/cancel"): {"ops", "ops as worker"},
    ("POST", "/api/jobs/{job_id}/retry"): {"ops", "ops as worker"},
    ("GET", "/api/queues"): {"admin", "ops", "ops as worker"},
    ("GET", "/api/workers"): {"admin", "ops", "ops as worker"},
    ("GET", "/api/drain"): {"admin", "ops", "ops as worker"},
    ("PUT", "/api/drain"): {"ops", "ops as worker"},
    ("GET", "/api/audit"): {"ops", "ops as worker"},
    ("GET", "/api/schedules"): {"admin", "ops", "ops as worker"},
    ("GET", "/api/schedules/{name}"): {"admin", "ops", "ops as worker"},
    ("PUT", "/api/schedules/{name}"): {"ops", "ops as worker"},
    ("DELETE", "/api/schedules/{name}"): {"ops", "ops as worker"},
    **{
        ("POST", f"/api/internal/jobs/{verb}"): {"worker"}
        for verb in (
            "enqueue",
            "claim",
            "exchange",
            "finish",
            "renew",
            "progress",
            "park",
            "release",
            "cancel",
            "farewell",
        )
    },
    ("GET", "/api/internal/jobs/{job_id}"): {"worker"},
    **{
        (method, f"/api/data-sources{path}"): {"analyst", "admin", "ops", "ops as worker"}
        for method, path in (
            ("GET", ""),
            ("POST", ""),
            ("GET", "/{data_source_id}"),
            ("PUT", "/{data_source_id}"),
            ("DELETE", "/{data_source_id}"),
            ("POST", "/{data_source_id}/test"),
            ("GET", "/{data_source_id}/browse"),
            ("GET", "/{data_source_id}/schema"),
        )
    },
    ("PUT", "/api/data-sources/{data_source_id}/default"): {"admin", "ops", "ops as worker"},
    **{
        ("GET", f"/api/schema/{path}"): {"analyst", "admin", "ops", "ops as worker"}
        for path in (
            "catalogs",
            "catalogs/{catalog}/schemas",
            "catalogs/{catalog}/schemas/{schema}/tables",
            "catalogs/{catalog}/schemas/{schema}/tables/{table}/columns",
            "search/tables",
            "search/columns",
        )
    },
    ("POST", "/api/schema/admin/refresh"): {"admin", "ops", "ops as worker"},
    ("GET", "/api/schema/stats"): {"admin", "ops", "ops as worker"},
}
REFUSALS = {
    "anonymous": (401, "AUTHENTICATION_REQUIRED"),
    "garbage": (401, "INVALID_TOKEN"),
    "basic": (401, "AUTHENTICATION_REQUIRED"),
    "analyst": (403, "PERMISSION_DENIED"),
    "admin": (403, "PERMISSION_DENIED"),
    "worker": (401, "INVALID_TOKEN"),
    "wrapper": (401, "INVALID_TOKEN"),
    "stranger": (401, "INVALID_TOKEN"),
    "nameless": (401, "INVALID_TOKEN"),
}
INTERNAL_REFUSALS = {
    "anonymous": (401, "AUTHENTICATION_REQUIRED"),
    "basic": (401, "AUTHENTICATION_REQUIRED"),
    "wrapper": (403, "PERMISSION_DENIED"),
    "stranger": (401, "INVALID_COMPONENT"),
    "nameless": (401, "INVALID_COMPONENT"),
}


def routes(parts: Parts) -> set[tuple[str, str]]:
    schema = create_app(parts).openapi()
    return {(method.upper(), path) for path, methods in schema["paths"].items() for method in methods}


async def test_every_route_has_a_row(parts: Parts) -> None:
    assert routes(parts) == set(MATRIX)


async def test_nothing_is_served_that_the_description_does_not_show(parts: Parts) -> None:
    served = create_app(parts).state.routes
    assert {(method, route.path_format) for route in served for method in route.methods} == set(MATRIX)


async def test_every_cell_of_the_matrix(anyone: httpx2.AsyncClient) -> None:
    for (method, path), allowed in MATRIX.items():
        target = re.sub(r"{\w+}", "nothing", re.sub(r"{\w+_id}", "999999", path))
        for name, headers in IDENTITIES.items():
            answer = await anyone.request(method, target, headers=headers)
            cell = f"{method} {path} as {name}: {answer.status_code} {answer.text[:200]}"
            if name in allowed:
                assert answer.status_code not in (401, 403, 500), cell
                continue
            internal = path.startswith("/api/internal")
            expected = INTERNAL_REFUSALS.get(name, (401, "INVALID_TOKEN")) if internal else REFUSALS[name]
            assert (answer.status_code, answer.json()["error"]["code"]) == expected, cell
            assert answer.status_code == 403 or answer.headers["www-authenticate"] == "Bearer", cell


async def test_without_a_service_token_there_is_no_internal_api(database: str, edge: Edge) -> None:
    async with plane(database, service_token=None) as parts:
        with edge.showing(parts) as url:
            await _closed(url, ["None", "x", SERVICE])


async def test_an_empty_service_token_opens_nothing(database: str, edge: Edge) -> None:
    async with plane(database, service_token="") as parts:
        with edge.showing(parts) as url:
            await _closed(url, ["None", "x", SERVICE])


async def _closed(url: str, tokens: list[str]) -> None:
    async with httpx2.AsyncClient(base_url=url, trust_env=False) as client:
        for token in tokens:
            headers = {"Authorization": f"Bearer {token}", "X-Component": "worker"}
            answer = await client.post("/api/internal/jobs/claim", headers=headers, json={})
            assert answer.status_code == 401, token
