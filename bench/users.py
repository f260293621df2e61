"""Users with an API key."""

from __future__ import annotations

import httpx2


async def ops_keys(url: str, operator_token: str, count: int) -> list[str]:
    return [await key(url, operator_token, f"user{number}@example.com") for number in range(count)]


async def key(url: str, operator_token: str, username: str, role: str = "ops") -> str:
    """The key of a new user."""
    headers = {"Authorization": f"Bearer {operator_token}"}
    async with httpx2.AsyncClient(
        base_url=url, headers=headers, timeout=60, trust_env=False
    ) as http:
        user = {"username": username, "role": role}
        (await http.post("/api/users", json=user)).raise_for_status()
        answer = await http.post(f"/api/users/{username}/api-keys")
        api_key: str = answer.raise_for_status().json()["key"]
        return api_key
