"""Penstock's own places are refused as data sources: for every role, when a source is written and
when it is used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from penstock.sources.home import OwnHome
from tests.api.answers import error
from tests.api.running_api import Api, data_of, running_api
from tests.graphs.deployment import postgres

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx2

    from tests.api.control_plane import Edge


@pytest.fixture
async def api(database: str, edge: Edge, tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(database, edge, tmp_path / "home") as it:
        yield it


def places(api: Api, home: Path) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("postgres", postgres(api.dsn)),
        ("duckdb", {"directory": str(home)}),
        ("duckdb", {"database": str(home / "secrets" / "x.duckdb")}),
        ("files", {"url": f"file://{home}/storage"}),
        ("files", {"url": f"file://{home.parent}"}),
    ]


async def test_no_role_adds_or_changes_a_source_to_a_place_of_our_own(
    api: Api, tmp_path: Path
) -> None:
    """Analysts make no source of the server's files at all, so they are refused before."""
    for number, (kind, config) in enumerate(places(api, tmp_path / "home")):
        for who in ("ann", "ada", "oz"):
            client: httpx2.AsyncClient = getattr(api, who)
            answer = await client.post(
                "/api/data-sources", json={"name": f"s{number}", "type": kind, "config": config}
            )
            if who == "ann":
                error(answer, 403, "PERMISSION_DENIED")
            else:
                assert "Penstock's own" in error(answer, 422, "VALIDATION_FAILED")["message"], (
                    kind,
                    config,
                )
    for path in ("/api/sources", "/api/data-sources"):
        named = {"alias": "home"} if path == "/api/sources" else {"name": "home"}
        body = named | {"type": "duckdb", "config": {"directory": str(tmp_path / "home")}}
        error(await api.oz.post(path, json=body), 422, "VALIDATION_FAILED")
    (tmp_path / "data").mkdir()
    body = {"name": "data", "type": "duckdb", "config": {"directory": str(tmp_path / "data")}}
    source_id = data_of(await api.ada.post("/api/data-sources", json=body), 201)["id"]
    moved = await api.ada.put(
        f"/api/data-sources/{source_id}", json={"config": {"directory": str(tmp_path / "home")}}
    )
    error(moved, 422, "VALIDATION_FAILED")


async def test_a_source_that_was_written_before_is_refused_when_it_is_used(
    api: Api, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    body = {"name": "data", "type": "duckdb", "config": {"directory": str(tmp_path / "data")}}
    source = data_of(await api.ada.post("/api/data-sources", json=body), 201)["id"]
    for kind, config in places(api, tmp_path / "home"):
        await api.sql(
            "UPDATE penstock.data_source SET type = $2, config = $3 WHERE data_source_id = $1",
            source,
            kind,
            json.dumps(config),
        )
        error(await api.oz.get(f"/api/data-sources/{source}/browse"), 422, "VALIDATION_FAILED")
        with pytest.raises(OwnHome):
            await api.graphs.sources.opening(source)
