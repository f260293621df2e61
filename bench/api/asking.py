"""An operator with a connection to the control plane."""

from __future__ import annotations

from typing import Any

import httpx2


class Asker:
    def __init__(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx2.AsyncClient(base_url=url, headers=headers, timeout=60, trust_env=False)

    async def __aenter__(self) -> Asker:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def __call__(self, method: str, path: str, body: Any = None) -> Any:
        answer = await self._http.request(method, path, json=body)
        if not answer.is_success:
            raise SystemExit(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        return answer.json()["data"]
