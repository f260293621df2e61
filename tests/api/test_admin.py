"""Bulk delete: filters, expected counts and dependencies."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from penstock.accounts.role import Role
from penstock.api.callers.identity import Identity
from penstock.wiring.control_plane import build_control_plane
from tests.api.answers import error
from tests.api.running_api import Api, data_of, running_api
from tests.graphs.deployment import settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.api.control_plane import Edge


@pytest.fixture
async def api(database: str, edge: Edge, tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(database, edge, tmp_path) as api:
        yield api


async def delete(
    somebody: httpx2.AsyncClient, kind: str, expected: int | None = None, **values: Any
) -> httpx2.Response:
    dry = values.pop("dry_run", False)
    body = {"resource_type": kind, "filters": values, "reason": "tidy", "dry_run": dry}
    counted = {} if expected is None else {"expected_count": expected}
    return await somebody.request("DELETE", "/api/admin/resources/bulk", json=body | counted)


async def test_a_dry_run_tells_and_deletes_nothing(api: Api) -> None:
    ids = [await api.mapping(f"test-{n}") for n in range(2)]
    await api.mapping("other")
    expected = {
        "dry_run": True,
        "matched_count": 2,
        "matched_ids": ids,
        "deleted_count": 0,
        "deleted_ids": [],
    }
    assert data_of(
        await delete(api.ada, "mapping", name_prefix="test-", dry_run=True)
    ) == expected | {
        "failed_ids": [],
        "errors": {},
    }
    assert len(await api.sql("SELECT FROM penstock.mapping")) == 3


async def test_what_fits_all_filters_is_deleted_of_every_kind(api: Api) -> None:
    old = datetime.now(UTC) - timedelta(hours=25)
    matching = await api.snapshot("test-1", status="failed", created_at=old)
    await api.snapshot("test-2", status="failed")
    await api.snapshot("test-3", status="ready", created_at=old)
    await api.snapshot("test-4", owner="ben", status="failed", created_at=old)
    await api.snapshot("prod", status="failed", created_at=old)
    filters = {
        "name_prefix": "test-",
        "created_by": "ann",
        "older_than_hours": 24,
        "status": "failed",
    }
    done = data_of(await delete(api.ada, "snapshot", 1, **filters))
    assert (done["deleted_ids"], done["failed_ids"]) == ([matching], [])
    assert len(await api.sql("SELECT FROM penstock.snapshot")) == 4
    mapping = await api.mapping("m")
    assert data_of(await delete(api.ada, "mapping", 1, created_by="ann"))["deleted_ids"] == [
        mapping
    ]


async def test_instances_are_ended_by_their_own_rules(api: Api) -> None:
    place = api.graphs.instances.launcher.place
    instance = await api.instance("i", status="failed", place=place)
    done = data_of(await delete(api.ada, "instance", 1, status="failed"))
    assert done["deleted_ids"] == [instance]
    assert await api.sql("SELECT FROM penstock.instance") == []


async def test_what_something_needs_stays_and_is_told_while_the_others_go(api: Api) -> None:
    needed, free = (
        await api.snapshot("a", status="ready"),
        await api.snapshot("b", status="ready"),
    )
    await api.instance(status="suspended", snapshot_id=needed)
    done = data_of(await delete(api.ada, "snapshot", 2, created_by="ann"))
    assert (done["matched_count"], done["deleted_count"]) == (2, 1)
    assert (done["deleted_ids"], done["failed_ids"]) == ([free], [needed])
    assert done["errors"][str(needed)].startswith("DEPENDENCY_EXISTS")


async def test_a_count_that_differs_deletes_nothing(api: Api) -> None:
    await api.mapping("a")
    for expected in (0, 2):
        refused = error(
            await delete(api.ada, "mapping", expected, name_prefix="a"), 422, "VALIDATION_FAILED"
        )
        assert refused["details"]["matched_count"] == 1
    error(await delete(api.ada, "mapping", name_prefix="a"), 422, "VALIDATION_FAILED")
    assert len(await api.sql("SELECT FROM penstock.mapping")) == 1


async def test_a_hundred_are_deleted_and_one_more_are_not(api: Api) -> None:
    await api.sql(
        "INSERT INTO penstock.mapping (name, owner_username)"
        " SELECT 'x', 'ann' FROM generate_series(1, 101)"
    )
    for dry_run in (True, False):
        many = await delete(api.ada, "mapping", 100, name_prefix="x", dry_run=dry_run)
        assert error(many, 422, "VALIDATION_FAILED")["details"]["maximum"] == 100
    await api.sql(
        "DELETE FROM penstock.mapping"
        " WHERE mapping_id = (SELECT max(mapping_id) FROM penstock.mapping)"
    )
    assert data_of(await delete(api.ada, "mapping", 100, name_prefix="x"))["deleted_count"] == 100


UNFIT: list[dict[str, Any]] = [
    {},
    {"name_prefix": ""},
    {"name_prefix": "x" * 256},
    {"name_prefix": "\0"},
    {"older_than_hours": -1},
    {"older_than_hours": 1e9},
    {"older_than_hours": "24"},
    {"status": "ready"},
    {"owner": "ann"},
]


async def test_filters_that_do_not_fit_are_refused(api: Api) -> None:
    for filters in UNFIT:
        error(await delete(api.ada, "mapping", 0, **filters), 422, "VALIDATION_FAILED")


async def test_signs_in_a_prefix_mean_themselves(api: Api) -> None:
    await api.mapping("a")
    for prefix in ("%", "_", "' OR true --"):
        assert data_of(await delete(api.ada, "mapping", 0, name_prefix=prefix))["matched_ids"] == []


async def test_it_is_for_admins_alone_and_in_the_audit(api: Api) -> None:
    for somebody in (api.ann, api.oz):
        error(await delete(somebody, "mapping", 0, name_prefix="x"), 403, "PERMISSION_DENIED")
    mapping = await api.mapping("x")
    data_of(await delete(api.ada, "mapping", 1, name_prefix="x"))
    [entry] = data_of(await api.oz.get("/api/audit", params={"subject": "mappings"}))
    assert (entry["actor"], entry["detail"]) == ("ada", {"reason": "tidy", "ids": [mapping]})


class Promoted:
    """Ada, with the role that she has at the moment."""

    role = Role.ADMIN

    async def identify(self, token: str) -> Identity | None:
        return Identity(username="ada", role=self.role, via="test") if token == "ada" else None


async def test_a_stored_answer_is_not_for_whom_the_route_refuses_now(
    database: str, edge: Edge, tmp_path: Path
) -> None:
    """Bulk deletion is for admins and not for ops."""
    ada = Promoted()
    async with build_control_plane(settings(tmp_path), database) as built:
        with edge.showing(replace(built, authenticators=(ada,))) as url:
            headers = {"Authorization": "Bearer ada", "Idempotency-Key": "once"}
            async with httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False) as client:
                first = await delete(client, "mapping", 0, name_prefix="none-")
                again = await delete(client, "mapping", 0, name_prefix="none-")
                assert (first.status_code, again.headers["idempotency-replayed"]) == (200, "true")
                ada.role = Role.OPS
                error(
                    await delete(client, "mapping", 0, name_prefix="none-"),
                    403,
                    "PERMISSION_DENIED",
                )
