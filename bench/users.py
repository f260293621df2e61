"""People with the role ops, each with an API key."""

from __future__ import annotations

import httpx2


async def ops_keys(url: str, operator_token: str, count: int) -> list[str]:
    shown = {"Authorization": f"Bearer {operator_token}"}
    async with httpx2.AsyncClient(base_url=url, headers=shown, timeout=60, trust_env=False) as http:
        return [await _key(http, f"user{number}@example.com") for number in range(count)]


async def _key(http: httpx2.AsyncClient, username: str) -> str:
    (await http.post("/api/users", json={"username": username, "role": "ops"})).raise_for_status()
    answer = await http.post(f"/api/users/{username}/api-keys")
    key: str = answer.raise_for_status().json()["key"]
    return key
