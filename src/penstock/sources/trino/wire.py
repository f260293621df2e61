"""HTTP requests to Trino, with retries for an overloaded or restarting coordinator.

A POST only registers a query and a page may be requested again, so every request is safe to repeat.
A POST is tried three times, a GET is retried for `retry_seconds`. Credentials are sent only to the
coordinator's origin: a response that links elsewhere is an error. A segment in external storage is
fetched with only the headers that storage services need, over connections that reach no further
into private networks than the coordinator's own (see `CheckedTransport`).
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
_CANCEL_SECONDS = 5.0
_CONNECTIONS = 200
_MAX_HEADERS, _MAX_HEADER_LENGTH, _MAX_URI = 16, 4096, 8192
# Headers with which Amazon, Google and Azure decrypt an object with a client-supplied key. Nothing
# broader: headers such as Metadata-Flavor unlock metadata services.
_STORAGE_HEADERS = (
    "x-amz-server-side-encryption-customer-",
    "x-goog-encryption-",
    "x-ms-encryption-",
)


def storage_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a segment; raises if one is not needed by a storage service."""
    if len(headers) > _MAX_HEADERS:
        raise SourceError(
            f"Trino lists {len(headers)} headers for a segment; the maximum is {_MAX_HEADERS}."
        )
    for name, value in headers.items():
        if not name.lower().startswith(_STORAGE_HEADERS):
            raise SourceError(
                f"Trino lists the header {name[:80]!r} for a segment, which is not allowed."
            )
        if len(value) > _MAX_HEADER_LENGTH or not value.isascii() or not value.isprintable():
            raise SourceError(f"The value of the segment header {name[:80]!r} is invalid.")
    return dict(headers)


def _is_plain(uri: str) -> bool:
    return len(uri) <= _MAX_URI and uri.isascii() and uri.isprintable()


@dataclass(frozen=True, slots=True, kw_only=True)
class _RetryDelay:
    """The reason for a retry, and the delay that the server requested."""

    reason: str
    wait: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _RetryPolicy:
    first_delay: float
    tries: float = inf
    seconds: float = inf

    def over(self, tries: int, elapsed: float) -> bool:
        return tries >= self.tries or elapsed >= self.seconds

    def delay(self, tries: int) -> float:
        return min(self.first_delay * 2.0 ** (tries - 1), _LONGEST_DELAY)


class Wire:
    """The HTTP layer of the client."""

    def __init__(
        self,
        config: Config,
        outbound: Outbound,
        *,
        clock: Clock = SYSTEM,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._config = config
        self._clock = clock
        self._jitter = jitter
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
        retry = _RetryPolicy(first_delay=_POST_DELAY, tries=_POST_TRIES)
        request = self._request("POST", self._config.origin + path, headers, content)
        return self._body(await self._send(request, retry))

    async def get(self, uri: str) -> bytes:
        """The body of one of the coordinator's URLs."""
        self._check_origin(uri)
        return self._body(await self._send(self._request("GET", uri), self._reading))

    async def fetch(self, uri: str, headers: Mapping[str, str]) -> bytes:
        """A segment's bytes, following at most one redirect of the coordinator."""
        sent = storage_headers(headers)
        answer = await self._send(self._segment_request(uri, sent), self._reading)
        if answer.status_code in _REDIRECTS and self.is_ours(uri):
            elsewhere = str(answer.url.join(answer.headers.get("Location", "")))
            answer = await self._send(self._segment_request(elsewhere, sent), self._reading)
        return self._body(answer)

    async def head(self, uri: str) -> None:
        """Keep the query alive; old servers without HEAD are not an error."""
        self._check_origin(uri)
        await self._try(self._request("HEAD", uri))

    async def acknowledge(self, uri: str) -> None:
        """Release a segment; errors are ignored, because unreleased segments expire.

        Only the coordinator is called; a URL elsewhere is ignored."""
        if self.is_ours(uri):
            await self._try(self._request("GET", uri))

    async def delete(self, uri: str) -> int | None:
        """Cancel a query, without retries; the status, or None without a response."""
        request = self._request(
            "DELETE", uri, {"X-Trino-User": self._config.user}, timeout=_CANCEL_SECONDS
        )
        answer = await self._try(request)
        return answer.status_code if isinstance(answer, httpx2.Response) else None

    def is_ours(self, uri: str) -> bool:
        """Whether it is one of the coordinator's URLs."""
        return origin(uri) == self._config.origin

    @property
    def _reading(self) -> _RetryPolicy:
        return _RetryPolicy(first_delay=_FIRST_DELAY, seconds=self._config.retry_seconds)

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
            raise SourceError("Trino sent a segment URL that is not a plain http or https URL.")
        secure = self._config.origin.startswith("https:") and not self._config.allow_http
        if parts.scheme == "http" and secure:
            raise SourceError(
                f"Trino sent a segment URL at {origin(uri)} without TLS.",
                hint="Use https for the spool's storage, or set allow_http.",
            )
        return self._request("GET", uri, headers)

    def _check_origin(self, uri: str) -> None:
        if not self.is_ours(uri):
            raise SourceError(
                f"Trino sent a URL at {origin(uri)} instead of {self._config.origin}.",
                hint="Behind a proxy the coordinator needs http-server.process-forwarded=true.",
            )

    async def _send(self, request: httpx2.Request, retry: _RetryPolicy) -> httpx2.Response:
        started, tries = self._clock.monotonic(), 0
        while True:
            answer = await self._try(request)
            if isinstance(answer, httpx2.Response):
                return answer
            tries += 1
            if retry.over(tries, self._clock.monotonic() - started):
                raise SourceUnavailable(
                    f"Trino did not answer: {answer.reason}, after {tries} tries.",
                    error_name=answer.reason,
                )
            wait = (
                retry.delay(tries) if answer.wait is None else min(answer.wait, self._longest_wait)
            )
            await self._clock.sleep(wait * (1 + self._jitter() / 4))

    @property
    def _longest_wait(self) -> float:
        """The cap of Retry-After, so that Trino does not abandon the query meanwhile."""
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
            return _RetryDelay(reason="an empty response")
        return answer

    def _retry_after(self, answer: httpx2.Response) -> float | None:
        retry_after = answer.headers.get("Retry-After", "")
        if retry_after.isdigit():
            return float(retry_after)
        try:
            return max(
                0.0, (parsedate_to_datetime(retry_after) - self._clock.now()).total_seconds()
            )
        except (TypeError, ValueError):
            return None

    def _body(self, answer: httpx2.Response) -> bytes:
        """The body if the status is 200. A storage's error text is not repeated: it may contain the
        URL's signature."""
        if answer.status_code != 200:
            ours = self.is_ours(str(answer.url))
            raise http_error(
                answer.status_code, self._config.scrub(answer.text) if ours else "from its storage"
            )
        return answer.content
