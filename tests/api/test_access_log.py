"""Refused requests are logged and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from penstock.api.requests.access_log import EVENTS_AT_ONCE, EVENTS_PER_SECOND, Refusals
from tests.api.control_plane import ANALYST, OPERATOR, SERVICE
from tests.api.test_users import bearer

if TYPE_CHECKING:
    import httpx2

    from penstock.api.services import Services

EVENTS = ("login_failed", "access_denied", "rate_limited")


def refusals_in(logs: list[Any]) -> list[dict[str, Any]]:
    return [event for event in logs if event["event"] in EVENTS]


@pytest.mark.parametrize(
    ("method", "path", "headers", "scheme"),
    [
        ("GET", "/api/jobs", bearer("wrong-token"), "bearer"),
        ("GET", "/api/data-sources", bearer("wrong-token"), "bearer"),
        (
            "POST",
            "/api/internal/jobs/claim",
            bearer("wrong-token") | {"X-Component": "worker"},
            "bearer",
        ),
        ("GET", "/api/data-sources", {}, "none"),
        ("GET", "/api/data-sources", {"X-Username": "ann"}, "header"),
        ("GET", "/login?token=wrong-token", {}, "none"),
    ],
)
async def test_a_failed_login_is_logged_and_counted(
    anyone: httpx2.AsyncClient, method: str, path: str, headers: dict[str, str], scheme: str
) -> None:
    with capture_logs() as logs:
        answer = await anyone.request(method, path, headers=headers)
    assert answer.status_code == 401
    [event] = refusals_in(logs)
    assert event == {
        "event": "login_failed",
        "log_level": "warning",
        "address": "127.0.0.1",
        "method": method,
        "path": path.partition("?")[0],
        "scheme": scheme,
        "left_out": 0,
        "room": "api.requests.access_log",
    }
    counted = f'penstock_failed_logins_total{{scheme="{scheme}"}} 1.0'
    assert counted in (await anyone.get("/metrics")).text


async def test_a_denial_is_logged_with_its_user_and_counted_by_role(
    anyone: httpx2.AsyncClient,
) -> None:
    with capture_logs() as logs:
        for path in ("/api/jobs", "/api/audit"):
            assert (await anyone.get(path, headers=bearer(ANALYST))).status_code == 403
        worker = bearer(SERVICE) | {"X-Component": "wrapper"}
        assert (
            await anyone.post("/api/internal/jobs/claim", headers=worker, json={})
        ).status_code == 403
    events = [
        (event["event"], event["path"], event.get("user"), event.get("via"))
        for event in refusals_in(logs)
    ]
    assert events == [
        ("access_denied", "/api/jobs", "analyst", "test"),
        ("access_denied", "/api/audit", "analyst", "test"),
        ("access_denied", "/api/internal/jobs/claim", None, None),
    ]
    text = (await anyone.get("/metrics")).text
    assert 'penstock_denials_total{role="analyst"} 2.0' in text
    assert 'penstock_denials_total{role="none"} 1.0' in text


async def test_what_is_let_in_is_no_refusal(anyone: httpx2.AsyncClient) -> None:
    with capture_logs() as logs:
        assert (await anyone.get("/api/audit", headers=bearer(OPERATOR))).status_code == 200
        assert (await anyone.get("/api/nothing", headers=bearer(OPERATOR))).status_code == 404
    assert refusals_in(logs) == []


async def test_a_flood_is_counted_whole_and_logged_in_part(services: Services) -> None:
    now = 0.0
    registry = CollectorRegistry()
    refusals = Refusals(registry, ticks=lambda: now)
    app = FastAPI()
    app.state.services = services
    scope = {
        "app": app,
        "client": ("198.51.100.7", 1),
        "headers": [],
        "method": "GET",
        "path": "/" + "x" * 500,
        "state": {},
    }
    with capture_logs() as logs:
        for _ in range(EVENTS_AT_ONCE + 7):
            refusals.note(scope, 401)
        assert len(logs) == EVENTS_AT_ONCE
        now = 1 / EVENTS_PER_SECOND
        refusals.note(scope, 401)
    assert [event["left_out"] for event in (logs[0], logs[-1])] == [0, 7]
    assert len(logs[0]["path"]) == 200
    counted = f'penstock_failed_logins_total{{scheme="none"}} {EVENTS_AT_ONCE + 8}.0'
    assert counted in generate_latest(registry).decode()
