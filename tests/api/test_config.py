"""Runtime configuration takes effect at once in every control plane, within its limits."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from penstock.graphs.errors import Maintenance
from penstock.graphs.runtime_config import PlatformConfig
from penstock.kit.db import Db
from tests.api.answers import error
from tests.api.running_api import Api, data_of, running_api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.api.control_plane import Edge

CONFIG = "/api/config"


@pytest.fixture
async def api(database: str, edge: Edge, tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(database, edge, tmp_path) as api:
        yield api


async def test_without_a_word_of_anybody_the_defaults_hold(api: Api) -> None:
    rules = data_of(await api.oz.get(f"{CONFIG}/lifecycle"))
    assert rules["instance"] == {
        "default_ttl": "P1D",
        "default_inactivity": "PT4H",
        "max_ttl": "P7D",
    }
    assert rules["mapping"] == {"default_ttl": None, "default_inactivity": None, "max_ttl": None}
    assert data_of(await api.oz.get(f"{CONFIG}/concurrency")) == {
        "per_analyst": 10,
        "cluster_total": 50,
        "updated_at": None,
    }
    mode = {"enabled": False, "message": "", "updated_at": None, "updated_by": None}
    assert data_of(await api.oz.get(f"{CONFIG}/maintenance")) == mode
    assert data_of(await api.oz.get(f"{CONFIG}/export")) == {"max_duration_seconds": 3600}


async def test_a_rule_of_life_changes_field_by_field_and_null_clears(api: Api) -> None:
    change = {
        "instance": {"default_ttl": "PT12H", "default_inactivity": None},
        "mapping": {"max_ttl": "P365D"},
    }
    assert data_of(await api.oz.put(f"{CONFIG}/lifecycle", json=change)) == {"updated": True}
    rules = data_of(await api.oz.get(f"{CONFIG}/lifecycle"))
    assert rules["instance"] == {
        "default_ttl": "PT12H",
        "default_inactivity": None,
        "max_ttl": "P7D",
    }
    assert rules["mapping"]["max_ttl"] == "P365D"
    assert rules["snapshot"] == {
        "default_ttl": "P7D",
        "default_inactivity": None,
        "max_ttl": "P90D",
    }


UNFIT: list[dict[str, object]] = [
    {},
    {"instance": {"default_ttl": "PT0S"}},
    {"instance": {"default_ttl": "P"}},
    {"instance": {"max_ttl": "P3654D"}},
    {"instance": {"default_ttl": "P7DT1S"}},
    {"instance": {"default_inactivity": "P8D"}},
    {"instance": {"max_ttl": "PT1H"}},
    {"instance": {"longest": "P1D"}},
    {"pod": {"default_ttl": "P1D"}},
    {"mapping": {"default_ttl": "P1D"}, "instance": {"default_ttl": "P30D"}},
]


async def test_a_rule_of_life_that_does_not_fit_changes_nothing(api: Api) -> None:
    before = data_of(await api.oz.get(f"{CONFIG}/lifecycle"))
    for change in UNFIT:
        error(await api.oz.put(f"{CONFIG}/lifecycle", json=change), 422, "VALIDATION_FAILED")
    assert data_of(await api.oz.get(f"{CONFIG}/lifecycle")) == before


async def test_the_longest_life_is_the_last_one_taken(api: Api) -> None:
    change = {"instance": {"max_ttl": "P3653D", "default_ttl": "P3653D"}}
    assert data_of(await api.oz.put(f"{CONFIG}/lifecycle", json=change)) == {"updated": True}


async def test_limits_are_taken_up_to_their_own_limits(api: Api) -> None:
    for per_analyst, cluster_total in ((1, 1), (100, 1000)):
        body = {"per_analyst": per_analyst, "cluster_total": cluster_total}
        changed = data_of(await api.oz.put(f"{CONFIG}/concurrency", json=body))
        assert changed["updated_at"].endswith("Z")
        assert data_of(await api.oz.get(f"{CONFIG}/concurrency")) == changed == changed | body


async def test_limits_one_past_their_own_are_refused(api: Api) -> None:
    for per_analyst, cluster_total in (
        (0, 10),
        (101, 10),
        (10, 0),
        (10, 1001),
        ("10", 10),
        (True, 10),
        (10, None),
    ):
        body = {"per_analyst": per_analyst, "cluster_total": cluster_total}
        error(await api.oz.put(f"{CONFIG}/concurrency", json=body), 422, "VALIDATION_FAILED")
    error(
        await api.oz.put(f"{CONFIG}/concurrency", json={"per_analyst": 10}),
        422,
        "VALIDATION_FAILED",
    )


async def test_the_length_of_an_export_has_limits_and_reaches_every_plane(api: Api) -> None:
    for seconds in (59, 86_401, 3600.5, "3600", None):
        wrong = await api.oz.put(f"{CONFIG}/export", json={"max_duration_seconds": seconds})
        error(wrong, 422, "VALIDATION_FAILED")
    async with Db(api.dsn, size=1) as db:
        other = PlatformConfig(db)
        for seconds in (60, 86_400):
            answer = await api.oz.put(f"{CONFIG}/export", json={"max_duration_seconds": seconds})
            assert data_of(answer) == {"max_duration_seconds": seconds}
            assert (await other.export()).max_duration == timedelta(seconds=seconds)


async def test_maintenance_is_said_to_who_creates_at_every_plane_and_ends(api: Api) -> None:
    on = {"enabled": True, "message": "Back at noon."}
    changed = data_of(await api.oz.put(f"{CONFIG}/maintenance", json=on))
    assert (changed["enabled"], changed["message"], changed["updated_by"]) == (
        True,
        "Back at noon.",
        "oz",
    )
    async with Db(api.dsn, size=1) as db:
        other = PlatformConfig(db)
        with pytest.raises(Maintenance, match="Back at noon"):
            await other.refuse_in_maintenance()
        async with db.transaction() as tx:
            assert (await other.maintenance(tx)).enabled
        data_of(await api.oz.put(f"{CONFIG}/maintenance", json={"enabled": False}))
        await other.refuse_in_maintenance()


async def test_maintenance_takes_a_message_up_to_its_limit(api: Api) -> None:
    for message, status in (("x" * 1000, 200), ("x" * 1001, 422), ("\0", 422)):
        answer = await api.oz.put(
            f"{CONFIG}/maintenance", json={"enabled": False, "message": message}
        )
        assert answer.status_code == status
    for body in ({}, {"enabled": 1}, {"enabled": "yes"}):
        error(await api.oz.put(f"{CONFIG}/maintenance", json=body), 422, "VALIDATION_FAILED")


async def test_every_change_is_in_the_audit(api: Api) -> None:
    await api.oz.put(f"{CONFIG}/export", json={"max_duration_seconds": 120})
    [entry] = data_of(await api.oz.get("/api/audit", params={"subject": "config:export"}))
    assert (entry["actor"], entry["action"]) == ("oz", "config.put")
    assert entry["detail"] == {"max_duration_seconds": 120}


async def test_only_operators_look_and_decide(api: Api) -> None:
    for what in ("lifecycle", "concurrency", "maintenance", "export"):
        for somebody in (api.ann, api.ada):
            error(await somebody.get(f"{CONFIG}/{what}"), 403, "PERMISSION_DENIED")
            error(await somebody.put(f"{CONFIG}/{what}", json={}), 403, "PERMISSION_DENIED")


async def test_while_the_platform_is_maintained_nothing_is_created_and_everything_is_read(
    api: Api,
) -> None:
    await api.mapping("m")
    snapshot = await api.snapshot("s", status="ready", prefix="p/")
    data_of(
        await api.oz.put(
            f"{CONFIG}/maintenance", json={"enabled": True, "message": "Back at noon."}
        )
    )
    node = {"label": "A", "sql": "SELECT 1 AS id", "primary_key": {"name": "id", "type": "INT64"}}
    for path, body in (
        ("mappings", {"name": "x", "node_definitions": [node]}),
        ("mappings/1/copy", {"name": "x"}),
        ("snapshots", {"name": "x", "mapping_id": 1}),
        ("instances", {"name": "x", "snapshot_id": snapshot}),
        ("instances/from-mapping", {"name": "x", "mapping_id": 1}),
    ):
        refused = await api.ann.post(f"/api/{path}", json=body)
        assert error(refused, 503, "MAINTENANCE")["message"] == "Back at noon.", path
        assert refused.headers["retry-after"]
    for path in (
        "mappings",
        "snapshots",
        f"snapshots/{snapshot}",
        "instances",
        "favorites",
        "schema/catalogs",
    ):
        data_of(await api.ann.get(f"/api/{path}"))
    data_of(
        await api.ann.post(
            "/api/favorites", json={"resource_type": "snapshot", "resource_id": snapshot}
        ),
        201,
    )
