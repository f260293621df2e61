"""The internal API requires a service token, and is disabled without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2

from tests.api.control_plane import SERVICE, plane

if TYPE_CHECKING:
    from tests.api.control_plane import Edge


async def test_without_a_service_token_there_is_no_internal_api(database: str, edge: Edge) -> None:
    async with plane(database, service_token=None) as services:
        with edge.showing(services) as url:
            await _closed(url, ["None", "x", SERVICE])


async def test_an_empty_service_token_opens_nothing(database: str, edge: Edge) -> None:
    async with plane(database, service_token="") as services:
        with edge.showing(services) as url:
            await _closed(url, ["None", "x", SERVICE])


async def _closed(url: str, tokens: list[str]) -> None:
    async with httpx2.AsyncClient(base_url=url, trust_env=False) as client:
        for token in tokens:
            headers = {"Authorization": f"Bearer {token}", "X-Component": "worker"}
            answer = await client.post("/api/internal/jobs/claim", headers=headers, json={})
            assert answer.status_code == 401, token
