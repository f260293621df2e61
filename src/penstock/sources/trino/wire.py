"""Requests that outlive a busy or restarting coordinator.

A POST only registers a query and a page may be asked for again, so every request here is safe to
repeat. A POST is tried three times; a GET for as long as `retry_seconds`. Credentials go to the
coordinator's own origin and nowhere else: an answer that sends us away is an error. A segment in
foreign storage is fetched with the few headers that storages need, over connections that lead no
further inside than the coordinator's own (see `CheckedTransport`).
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
from penstock.kit.outbound_http import AnswerTooLarge, CheckedTransport, checked_client, fetch
from penstock.sources.errors import SourceError, SourceUnavailable
from penstock.sources.rest import TOO_LARGE_HINT
from penstock.sources.trino.config import origin
from penstock.sources.trino.failure import http_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.kit.outbound import Outbound
    from penstock.sources.trino.config import Config

_BUSY = frozenset({429, 502, 503, 504})
_REDIRECTS = frozenset({302, 303, 307, 308})
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 5.0
_POST_DELAY, _POST_TRIES = 0.5, 3
_LONGEST_RETRY_AFTER = 60.0
_FAREWELL_SECONDS = 5.0
_CONNECTIONS = 200
_MAX_HEADERS, _MAX_HEADER_LENGTH, _MAX_URI = 16, 4096, 8192
# What the storages of Amazon, Google and Azure need to decrypt an object with a key of the client.
# Nothing broader: metadata services are opened by headers such as Metadata-Flavor.
_STORAGE_HEADERS = (
    "x-amz-server-side-encryption-customer-",
    "x-goog-encryption-",
    "x-ms-encryption-",
)


def storage_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a segment, if all of them are ones that a storage needs."""
    if len(headers) > _MAX_HEADERS:
        raise SourceError(
            f"Trino names {len(headers)} headers for a segment; at most {_MAX_HEADERS} are sent."
        )
    for name, value in headers.items():
        if not name.lower().startswith(_STORAGE_HEADERS):
            raise SourceError(
                f"Trino would have the header {name[:80]!r} sent with a segment's request."
            )
        if len(value) > _MAX_HEADER_LENGTH or not value.isascii() or not value.isprintable():
            raise SourceError(f"The value of the header {name[:80]!r} of a segment cannot be sent.")
    return dict(headers)


def _is_plain(uri: str) -> bool:
    return len(uri) <= _MAX_URI and uri.isascii() and uri.isprintable()


@dataclass(frozen=True, slots=True, kw_only=True)
class _RetryDelay:
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

    def __init__(
        self,
        config: Config,
        outbound: Outbound,
        *,
        clock: Clock = SYSTEM,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._config = config
        self._clock = clock
        self._chance = chance
        self.max_bytes = outbound.policy.answer_bytes
        context = ssl.create_default_context(cafile=config.ca_file)
        coordinator = CheckedTransport(outbound, context=context, connections=_CONNECTIONS)
        storage = CheckedTransport(
            outbound, context=context, connections=_CONNECTIONS, behind=coordinator
        )
        timeout = httpx2.Timeout(config.request_timeout, connect=min(10.0, config.request_timeout))
        headers = {"Accept-Encoding": "identity"}
        self._http = checked_client(coordinator, timeout=timeout, headers=headers)
        self._storage = checked_client(storage, timeout=timeout, headers=headers)

    async def close(self) -> None:
        await self._http.aclose()
        await self._storage.aclose()

    async def post(self, path: str, content: bytes, headers: Mapping[str, str]) -> bytes:
        patience = _Patience(first_delay=_POST_DELAY, tries=_POST_TRIES)
        request = self._request("POST", self._config.origin + path, headers, content)
        return self._body(await self._send(request, patience))

    async def get(self, uri: str) -> bytes:
        """The body at one of the coordinator's own addresses."""
        self._check_origin(uri)
        return self._body(await self._send(self._request("GET", uri), self._reading))

    async def fetch(self, uri: str, headers: Mapping[str, str]) -> bytes:
        """A segment's bytes, from wherever the coordinator keeps or redirects it: once, by itself."""
        sent = storage_headers(headers)
        answer = await self._send(self._segment_request(uri, sent), self._reading)
        if answer.status_code in _REDIRECTS and self.is_ours(uri):
            elsewhere = str(answer.url.join(answer.headers.get("Location", "")))
            answer = await self._send(self._segment_request(elsewhere, sent), self._reading)
        return self._body(answer)

    async def head(self, uri: str) -> None:
        """Say that we are still here; an old server that knows no HEAD is not an error."""
        self._check_origin(uri)
        await self._try(self._request("HEAD", uri))

    async def acknowledge(self, uri: str) -> None:
        """Let a segment go; one that nobody lets go expires by itself, so a failure here is none.

        It is the coordinator that is told; an address elsewhere is not asked."""
        if self.is_ours(uri):
            await self._try(self._request("GET", uri))

    async def delete(self, uri: str) -> int | None:
        """Ask once for a query's end; the status, or None when nobody answers."""
        request = self._request(
            "DELETE", uri, {"X-Trino-User": self._config.user}, timeout=_FAREWELL_SECONDS
        )
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

    def _segment_request(self, uri: str, headers: Mapping[str, str]) -> httpx2.Request:
        parts = httpx2.URL(uri) if _is_plain(uri) else None
        if (
            parts is None
            or parts.scheme not in ("http", "https")
            or parts.userinfo
            or not parts.host
        ):
            raise SourceError(
                "Trino named an address of a segment that is not plain http or https."
            )
        secure = self._config.origin.startswith("https:") and not self._config.allow_http
        if parts.scheme == "http" and secure:
            raise SourceError(
                f"Trino would have a segment fetched from {origin(uri)}, without TLS.",
                hint="Let the storage of the spool speak https; allow_http permits it otherwise.",
            )
        return self._request("GET", uri, headers)

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
                    f"Trino did not answer: {answer.reason}, after {tries} tries.",
                    error_name=answer.reason,
                )
            wait = (
                patience.delay(tries)
                if answer.wait is None
                else min(answer.wait, self._longest_wait)
            )
            await self._clock.sleep(wait * (1 + self._chance() / 4))

    @property
    def _longest_wait(self) -> float:
        """A server may ask us to be away, but not for so long that it gives our query up."""
        return min(_LONGEST_RETRY_AFTER, self._config.client_timeout / 3)

    async def _try(self, request: httpx2.Request) -> httpx2.Response | _RetryDelay:
        try:
            answer = await fetch(
                self._http if self.is_ours(str(request.url)) else self._storage,
                request,
                max_bytes=self.max_bytes,
                seconds=max(self._config.client_timeout, self._config.request_timeout),
            )
        except AnswerTooLarge as e:
            raise SourceError(f"Trino: {e}.", hint=TOO_LARGE_HINT) from None
        except httpx2.TransportError as e:
            return _RetryDelay(reason=type(e).__name__)
        if answer.status_code in _BUSY:
            return _RetryDelay(reason=f"HTTP {answer.status_code}", wait=self._retry_after(answer))
        if answer.status_code == 200 and not answer.content and request.method in ("GET", "POST"):
            return _RetryDelay(reason="an empty answer")
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
        """What a storage says of a failure is not repeated: it may hold the signature of its
        address."""
        if answer.status_code != 200:
            ours = self.is_ours(str(answer.url))
            raise http_error(
                answer.status_code, self._config.scrub(answer.text) if ours else "from its storage"
            )
        return answer.content
