"""A control plane as a graph server knows it: the five internal routes, and a record of all that
was said."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Self

from tests.servers.http import HttpServer, Request, Response, as_json

if TYPE_CHECKING:
    from collections.abc import Callable

TOKEN = "wrapper-token-of-instance-7"
INSTANCE = 7
DEADLINE = 60.0


class StandIn:
    """`assignment` is what the mapping route gives; None is a 404. Reports to the route `refused`
    are 409."""

    def __init__(self, assignment: dict[str, Any] | None) -> None:
        self.assignment = assignment
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.refused = ""
        self._news = asyncio.Condition()
        self._http = HttpServer(self._serve)
        self.faults = self._http.faults

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.__aexit__()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.port}"

    def told(self, what: str) -> list[dict[str, Any]]:
        return [body for name, body in self.said if name == what]

    async def heard(
        self, what: str, matches: Callable[[dict[str, Any]], bool] = lambda _: True
    ) -> dict[str, Any]:
        """The first such report, waited for."""

        def found() -> dict[str, Any] | None:
            return next((body for body in self.told(what) if matches(body)), None)

        async with asyncio.timeout(DEADLINE), self._news:
            await self._news.wait_for(lambda: found() is not None)
        body = found()
        assert body is not None
        return body

    async def outcome(self) -> dict[str, Any]:
        return await self.heard("status", lambda body: body["status"] in ("running", "failed"))

    async def _serve(self, request: Request) -> Response:
        prefix = f"/api/internal/instances/{INSTANCE}/"
        if (
            request.headers.get("authorization") != f"Bearer {TOKEN}"
            or request.headers.get("x-component") != "wrapper"
        ):
            return as_json(
                {"error": {"code": "INVALID_TOKEN", "message": "No.", "details": {}}}, status=401
            )
        if not request.path.startswith(prefix):
            return _missing()
        what = request.path.removeprefix(prefix)
        if (request.method, what) == ("GET", "mapping"):
            await self._note("asked", {})
            return _missing() if self.assignment is None else as_json({"data": self.assignment})
        if (request.method, what) == ("POST", "activity"):
            await self._note(what, {})
            return Response(status=204)
        if request.method == "PUT" and what in ("status", "metrics", "progress"):
            await self._note(what, json.loads(request.body))
            if what == self.refused:
                return as_json(
                    {"error": {"code": "INVALID_STATE", "message": "No.", "details": {}}},
                    status=409,
                )
            return as_json({"data": {"updated": True}})
        return _missing()

    async def _note(self, what: str, body: dict[str, Any]) -> None:
        async with self._news:
            self.said.append((what, body))
            self._news.notify_all()


def _missing() -> Response:
    return as_json(
        {"error": {"code": "RESOURCE_NOT_FOUND", "message": "No.", "details": {}}}, status=404
    )
