"""Requests that outlive a busy or restarting coordinator.

A POST only registers a query and a page may be asked for again, so every request here is safe to repeat. A POST is
tried three times; a GET for as long as `retry_seconds`. Credentials go to the coordinator's own origin and nowhere
else: an answer that sends us away is an error, and a segment in foreign storage is fetched with its own headers.
"""

from __future__ import annotations

import random
import ssl
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from math import inf
from typing import TYPE_CHECKING

import httpx2

from penstock.kit.clock import SYSTEM, Clock
from penstock.sources.errors import SourceError, SourceUnavailable
from penstock.sources.trino.config import origin
from penstock.sources.trino.failure import http_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.sources.trino.config import Config

_BUSY = frozenset({429, 502, 503, 504})
_REDIRECTS = frozenset({302, 303, 307, 308})
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 5.0
_POST_DELAY, _POST_TRIES = 0.5, 3
_LONGEST_RETRY_AFTER = 60.0
_FAREWELL_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setback:
    """An answer that calls for another try."""

    reason: str
    wait: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Patience:
    first_delay: float
    tries: float = inf
    seconds: float = inf

    def over(self, tries: int, elapsed: float) -> bool:
        return tries >= self.tries or elapsed >= self.seconds

    def delay(self, tries: int) -> float:
        return min(self.first_delay * 2.0 ** (tries - 1), _LONGEST_DELAY)


class Wire:
    """The HTTP half of the client."""

    def __init__(self, config: Config, *, clock: Clock = SYSTEM, chance: Callable[[], float] = random.random) -> None:
        self._config = config
        self._clock = clock
        self._chance = chance
        self._http = httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", "User-Agent": "penstock"},
            limits=httpx2.Limits(max_connections=200, max_keepalive_connections=50, keepalive_expiry=30),
            timeout=httpx2.Timeout(config.request_timeout, connect=min(10.0, config.request_timeout)),
            trust_env=False,
            verify=ssl.create_default_context(cafile=config.ca_file) if config.origin.startswith("https:") else True,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def post(self, path: str, content: bytes, headers: Mapping[str, str]) -> bytes:
        patience = _Patience(first_delay=_POST_DELAY, tries=_POST_TRIES)
        request = self._request("POST", self._config.origin + path, headers, content)
        return self._body(await self._send(request, patience))

    async def get(self, uri: str) -> bytes:
        """The body at one of the coordinator's own addresses."""
        self._check_origin(uri)
        return self._body(await self._send(self._request("GET", uri), self._reading))

    async def fetch(self, uri: str, headers: Mapping[str, str]) -> bytes:
        """A segment's bytes, from wherever the coordinator keeps or redirects it."""
        answer = await self._send(self._request("GET", uri, headers), self._reading)
        if answer.status_code in _REDIRECTS:
            elsewhere = str(answer.url.join(answer.headers.get("Location", "")))
            answer = await self._send(self._request("GET", elsewhere, headers), self._reading)
        return self._body(answer)

    async def head(self, uri: str) -> None:
        """Say that we are still here; an old server that knows no HEAD is not an error."""
        self._check_origin(uri)
        await self._try(self._request("HEAD", uri))

    async def acknowledge(self, uri: str) -> None:
        """Let a segment go; one that nobody lets go expires by itself, so a failure here is none."""
        await self._try(self._request("GET", uri))

    async def delete(self, uri: str) -> int | None:
        """Ask once for a query's end; the status, or None when nobody answers."""
        request = self._request("DELETE", uri, {"X-Trino-User": self._config.user}, timeout=_FAREWELL_SECONDS)
        answer = await self._try(request)
        return answer.status_code if isinstance(answer, httpx2.Response) else None

    def is_ours(self, uri: str) -> bool:
        """Whether it is one of the coordinator's own addresses."""
        return origin(uri) == self._config.origin

    @property
    def _reading(self) -> _Patience:
        return _Patience(first_delay=_FIRST_DELAY, seconds=self._config.retry_seconds)

    def _request(
        self,
        method: str,
        uri: str,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout: float | None = None,
    ) -> httpx2.Request:
        sent = dict(headers or {})
        if (mine := self._config.authorization) is not None and self.is_ours(uri):
            sent["Authorization"] = mine
        return self._http.build_request(
            method, uri, headers=sent, content=content, timeout=timeout or self._http.timeout
        )

    def _check_origin(self, uri: str) -> None:
        if not self.is_ours(uri):
            raise SourceError(
                f"Trino sent us to {origin(uri)}, which is not {self._config.origin}.",
                hint="Behind a proxy the coordinator needs http-server.process-forwarded=true.",
            )

    async def _send(self, request: httpx2.Request, patience: _Patience) -> httpx2.Response:
        began, tries = self._clock.monotonic(), 0
        while True:
            answer = await self._try(request)
            if isinstance(answer, httpx2.Response):
                return answer
            tries += 1
            if patience.over(tries, self._clock.monotonic() - began):
                raise SourceUnavailable(
                    f"Trino did not answer: {answer.reason}, after {tries} tries.", error_name=answer.reason
                )
            wait = patience.delay(tries) if answer.wait is None else min(answer.wait, self._longest_wait)
            await self._clock.sleep(wait * (1 + self._chance() / 4))

    @property
    def _longest_wait(self) -> float:
        """A server may ask us to be away, but not for so long that it gives our query up."""
        return min(_LONGEST_RETRY_AFTER, self._config.client_timeout / 3)

    async def _try(self, request: httpx2.Request) -> httpx2.Response | _Setback:
        try:
            answer = await self._http.send(request)
        except httpx2.TransportError as e:
            return _Setback(reason=type(e).__name__)
        if answer.status_code in _BUSY:
            return _Setback(reason=f"HTTP {answer.status_code}", wait=self._retry_after(answer))
        if answer.status_code == 200 and not answer.content and request.method in ("GET", "POST"):
            return _Setback(reason="an empty answer")
        return answer

    def _retry_after(self, answer: httpx2.Response) -> float | None:
        said = answer.headers.get("Retry-After", "")
        if said.isdigit():
            return float(said)
        try:
            return max(0.0, (parsedate_to_datetime(said) - self._clock.now()).total_seconds())
        except (TypeError, ValueError):
            return None

    def _body(self, answer: httpx2.Response) -> bytes:
        """What a storage says of a failure is not repeated: it may hold the signature of its address."""
        if answer.status_code != 200:
            ours = self.is_ours(str(answer.url))
            raise http_error(answer.status_code, self._config.scrub(answer.text) if ours else "from its storage")
        return answer.content
