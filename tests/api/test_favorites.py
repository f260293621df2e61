"""Favorites over HTTP; a favorite is deleted with its resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.answers import error
from tests.api.desk import Desk, data_of, sitting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx2

    from tests.api.plane import Edge

FAVORITES = "/api/favorites"


@pytest.fixture
async def desk(database: str, edge: Edge, tmp_path: Path) -> AsyncIterator[Desk]:
    async with sitting(database, edge, tmp_path) as desk:
        yield desk


async def add(somebody: httpx2.AsyncClient, kind: str, number: int) -> Any:
    return data_of(
        await somebody.post(FAVORITES, json={"resource_type": kind, "resource_id": number}), 201
    )


async def names(somebody: httpx2.AsyncClient, **params: str) -> list[str]:
    return [
        favorite["resource_name"]
        for favorite in data_of(await somebody.get(FAVORITES, params=params))
    ]


async def test_everybody_keeps_their_own_of_every_kind_newest_first(desk: Desk) -> None:
    await add(desk.ann, "mapping", await desk.mapping("M"))
    await add(desk.ann, "snapshot", await desk.snapshot("S", owner="ben"))
    favorite = await add(desk.ann, "instance", await desk.instance("I"))
    assert (favorite["resource_type"], favorite["resource_name"]) == ("instance", "I")
    assert favorite["created_at"].endswith("Z")
    assert await names(desk.ann) == ["I", "S", "M"]
    assert await names(desk.ann, sort_order="asc") == ["M", "S", "I"]
    assert await names(desk.ann, resource_type="snapshot") == ["S"]
    assert await names(desk.ben) == []
    page = (await desk.ann.get(FAVORITES, params={"limit": "1", "offset": "1"})).json()
    assert [favorite["resource_name"] for favorite in page["data"]] == ["S"]
    assert page["meta"]["total"] == 3


async def test_a_thing_is_a_favourite_once_and_must_be_there(desk: Desk) -> None:
    number = await desk.mapping()
    await add(desk.ann, "mapping", number)
    twice = await desk.ann.post(FAVORITES, json={"resource_type": "mapping", "resource_id": number})
    error(twice, 409, "CONFLICT")
    await add(desk.ben, "mapping", number)
    for kind, missing in (("mapping", number + 1), ("snapshot", number), ("instance", 2**63 - 1)):
        answer = await desk.ann.post(
            FAVORITES, json={"resource_type": kind, "resource_id": missing}
        )
        error(answer, 404, "RESOURCE_NOT_FOUND")


UNFIT: list[dict[str, Any]] = [
    {"resource_type": "pod", "resource_id": 1},
    {"resource_type": "mapping", "resource_id": 0},
    {"resource_type": "mapping", "resource_id": 2**63},
    {"resource_type": "mapping", "resource_id": "1"},
    {"resource_type": "mapping"},
]


async def test_what_is_no_thing_is_refused(desk: Desk) -> None:
    for body in UNFIT:
        error(await desk.ann.post(FAVORITES, json=body), 422, "VALIDATION_FAILED")


async def test_dropping_twice_is_no_error_and_drops_nobody_elses(desk: Desk) -> None:
    number = await desk.mapping()
    await add(desk.ann, "mapping", number)
    await add(desk.ben, "mapping", number)
    assert data_of(await desk.ann.delete(f"{FAVORITES}/mapping/{number}")) == {"deleted": True}
    assert data_of(await desk.ann.delete(f"{FAVORITES}/mapping/{number}")) == {"deleted": False}
    assert data_of(await desk.ann.delete(f"{FAVORITES}/snapshot/{number}")) == {"deleted": False}
    assert await names(desk.ben) == ["m"]
    error(await desk.ann.delete(f"{FAVORITES}/pod/1"), 422, "VALIDATION_FAILED")
    error(await desk.ann.delete(f"{FAVORITES}/mapping/{2**63}"), 422, "VALIDATION_FAILED")


async def test_a_thing_that_is_deleted_is_nobodys_favourite_and_a_new_name_is_shown(
    desk: Desk,
) -> None:
    things = {
        "mapping": await desk.mapping("old"),
        "snapshot": await desk.snapshot("old"),
        "instance": await desk.instance("old"),
    }
    for kind, number in things.items():
        await add(desk.ann, kind, number)
        await desk.sql(f"UPDATE penstock.{kind} SET name = 'new'")
        assert await names(desk.ann, resource_type=kind) == ["new"]
        await desk.sql(f"DELETE FROM penstock.{kind}")
        assert await names(desk.ann) == []
