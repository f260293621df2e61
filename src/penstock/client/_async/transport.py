"""HTTP transport to a control plane: JSON, errors as exceptions, and retries that never repeat a
write.

Every write carries an Idempotency-Key, so that sending it again is safe whatever became of the
first one; reads are safe anyway. A Cypher query has no key: it is sent again only when the first
try did not arrive.
"""

from __future__ import annotations

import random
import re
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import quote

import anyio
import httpx2

from penstock.client.errors import ClientError, rebuilt, unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from penstock.client.address import Address

TRIES = 4
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 30.0
LONGEST_SILENCE = 600.0
"""Read timeout of files and streams; other requests use the client's own timeout."""
_PLACE = re.compile(r"\{(\w+)\}")
_AGAIN = {429, 502, 503, 504}
_DECIDED = {"DRAINING", "MAINTENANCE"}


class Request(TypedDict, total=False):
    """What a request has beside its method and its path."""

    params: dict[str, Any]
    headers: dict[str, str]
    json: object
    content: bytes
    timeout: float | httpx2.Timeout


class AsyncTransport:
    def __init__(self, address: Address, *, timeout: float = 30.0, tries: int = TRIES) -> None:
        headers = {"Accept": "application/json"}
        if address.token:
            headers["Authorization"] = f"Bearer {address.token}"
        elif address.username:
            headers["X-Username"] = address.username
        self.url: str = address.url
        self._slow = httpx2.Timeout(timeout, read=LONGEST_SILENCE, write=LONGEST_SILENCE)
        self._tries = tries
        # A proxy of the environment does not lead to this machine.
        self._http = httpx2.AsyncClient(
            base_url=address.url,
            headers=headers,
            timeout=timeout,
            trust_env=not address.is_local,
        )

    async def aclose(self) -> None:
        await self._http.aclose()

    async def call(
        self,
        method: str,
        template: str,
        *,
        path: Mapping[str, object] | None = None,
        query: Mapping[str, object] | None = None,
        json: object = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """The decoded body of the answer; a ClientError for anything but success."""
        sent = dict(headers or {})
        if method != "GET" and template.startswith("/api"):
            sent["Idempotency-Key"] = str(uuid.uuid4())
        request: Request = {"params": _given(query), "headers": sent}
        if json is not None:
            request["json"] = json
        if timeout is not None:
            request["timeout"] = timeout
        answer = await self._tried(method, filled(template, path or {}), request)
        return answer.json() if answer.content else None

    async def content(
        self,
        method: str,
        template: str,
        *,
        path: Mapping[str, object],
        query: Mapping[str, object] | None = None,
    ) -> bytes:
        """An answer that is a file."""
        request: Request = {
            "params": _given(query),
            "headers": {"Accept": "*/*"},
            "timeout": self._slow,
        }
        return (await self._tried(method, filled(template, path), request)).content

    async def sent(
        self, method: str, template: str, content: bytes, *, query: Mapping[str, object]
    ) -> Any:
        """A file to the server."""
        headers = {"Idempotency-Key": str(uuid.uuid4()), "Content-Type": "application/octet-stream"}
        request: Request = {
            "params": _given(query),
            "headers": headers,
            "content": content,
            "timeout": self._slow,
        }
        return (await self._tried(method, template, request)).json()

    @asynccontextmanager
    async def streamed(
        self,
        method: str,
        template: str,
        *,
        path: Mapping[str, object],
        accept: str,
        json: object = None,
    ) -> AsyncIterator[httpx2.Response]:
        """An answer that is read as it comes."""
        place, headers = filled(template, path), {"Accept": accept}
        try:
            async with self._http.stream(
                method, place, json=json, headers=headers, timeout=self._slow
            ) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise rebuilt(answer.status_code, _body(answer))
                yield answer
        except httpx2.TransportError as e:
            raise unreachable(self.url, e) from e

    async def _tried(self, method: str, place: str, request: Request) -> httpx2.Response:
        safe = method == "GET" or "Idempotency-Key" in request["headers"]
        for number in range(self._tries):
            last = number == self._tries - 1
            try:
                answer = await self._http.request(method, place, **request)
            except httpx2.TransportError as e:
                if last or not (safe or isinstance(e, httpx2.ConnectError)):
                    raise unreachable(self.url, e) from e
                await anyio.sleep(_pause(number, None))
                continue
            if answer.is_success:
                return answer
            error = rebuilt(answer.status_code, _body(answer))
            if last or not safe or not _worth_waiting(error):
                raise error
            await anyio.sleep(_pause(number, answer.headers.get("Retry-After")))
        raise AssertionError("the last try returns or raises")


def filled(template: str, path: Mapping[str, object]) -> str:
    """A route's template with its places filled in, each as one segment."""
    return _PLACE.sub(lambda place: quote(str(path[place[1]]), safe=""), template)


def _worth_waiting(error: ClientError) -> bool:
    """A draining server stays so for longer than a retry delay."""
    return error.status in _AGAIN and error.code not in _DECIDED


def _pause(number: int, asked: str | None) -> float:
    if asked is not None and asked.isdigit():
        return min(float(asked), LONGEST_PAUSE)
    return FIRST_PAUSE * (1 << number) * random.uniform(0.5, 1.5)  # noqa: S311 - jitter


def _given(query: Mapping[str, object] | None) -> dict[str, Any]:
    return {name: value for name, value in (query or {}).items() if value is not None}


def _body(answer: httpx2.Response) -> object:
    try:
        return answer.json()
    except ValueError:
        return None
