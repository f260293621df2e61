"""Normal users: each asks one thing after the other, with a pause in between, and is timed."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    from bench.load.places import Place

USERS = 8
PAUSE_SECONDS = 0.1
QUERY = {"query": "MATCH (n) RETURN count(*)"}


@dataclass(frozen=True, slots=True)
class Experience:
    milliseconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    of_paths: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


async def measure(place: Place, seconds: float) -> Experience:
    experience = Experience()
    users = [
        asyncio.create_task(_user(place, headers, experience)) for headers in place.headers[:USERS]
    ]
    done, _ = await asyncio.wait(users, timeout=seconds)
    for user in users:
        user.cancel()
    for user in done:
        user.result()
    return experience


async def _user(place: Place, headers: dict[str, str], experience: Experience) -> None:
    asked = (
        ("GET", "/api/mappings?limit=20", None),
        ("GET", "/api/instances?limit=20", None),
        ("POST", f"{place.path}/query", QUERY),
    )
    async with httpx2.AsyncClient(
        base_url=place.url, headers=headers, timeout=60, trust_env=False
    ) as http:
        while True:
            for method, path, body in asked:
                began = time.perf_counter()
                try:
                    answer = await http.request(method, path, json=body)
                    error = "" if answer.is_success else f"{answer.status_code} {path}"
                except httpx2.HTTPError as e:
                    error = f"{type(e).__name__} {path}"
                took = (time.perf_counter() - began) * 1000
                experience.milliseconds.append(took)
                experience.of_paths[path].append(took)
                experience.errors.extend([error] if error else [])
                await asyncio.sleep(PAUSE_SECONDS)
