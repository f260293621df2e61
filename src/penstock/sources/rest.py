"""A JSON over HTTP client with retries, for drivers of REST sources.

Use it only for requests that are safe to repeat: an overloaded source, a lost connection or a
truncated response is retried for `retry_seconds`. Redirects are not followed, so credentials are
sent only to their own origin.
"""

from __future__ import annotations

import random
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import httpx2
import orjson

from penstock.kit.clock import SYSTEM, Clock
from penstock.kit.errors import InvalidInput
from penstock.kit.outbound_http import AnswerTooLarge, CheckedTransport, checked_client, fetch
from penstock.sources.errors import SourceError, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.kit.outbound import Outbound

_BUSY = frozenset({429, 502, 503, 504})
_FIRST_DELAY, _LONGEST_DELAY, _LONGEST_RETRY_AFTER = 0.1, 5.0, 60.0
_CONNECT_SECONDS = 10.0
_ANSWER_TIMEOUTS = 10
"""A slow response is abandoned after this many times the timeout."""
TOO_LARGE_HINT = "Request less data at once, or have the operator raise outbound_answer_mb."


Document: TypeAlias = dict[str, Any]
"""A JSON object of a vendor's API, whose reference says what it has in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    body: bytes

    def json(self, product: str) -> Document:
        try:
            document = orjson.loads(self.body)
        except orjson.JSONDecodeError:
            document = None
        if not isinstance(document, dict):
            raise SourceError(
                f"{product} did not return JSON; check its address.", status=self.status
            )
        return document


def vendor_error(body: bytes, *, text: str) -> Document:
    """The `error` of a response; one that is only text becomes the member `text` of it."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    error = document.get("error") if isinstance(document, dict) else None
    return error if isinstance(error, dict) else {text: error}


@dataclass(frozen=True, slots=True, kw_only=True)
class _RetryDelay:
    reason: str
    wait: float | None = None


class Rest:
    """A client of one origin; `retry_seconds` is how long a request is retried."""

    def __init__(
        self,
        product: str,
        base: str,
        outbound: Outbound,
        *,
        timeout: float,
        retry_seconds: float,
        ca_file: str | None = None,
        clock: Clock = SYSTEM,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._product = product
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._jitter = jitter
        self._max_bytes = outbound.policy.answer_bytes
        self._answer_seconds = timeout * _ANSWER_TIMEOUTS
        self._http = checked_client(
            CheckedTransport(outbound, context=ssl.create_default_context(cafile=ca_file)),
            base_url=base,
            headers={"Accept": "application/json"},
            timeout=httpx2.Timeout(timeout, connect=min(_CONNECT_SECONDS, timeout)),
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """The response, whatever its status; raises `SourceUnavailable` when retries run out."""
        request = self._request(method, path, body, params, headers)
        started, tries = self._clock.monotonic(), 0
        while not isinstance(answer := await self._try(request), Answer):
            tries += 1
            if self._clock.monotonic() - started >= self._retry_seconds:
                raise SourceUnavailable(
                    f"{self._product} did not answer: {answer.reason}, after {tries} tries.",
                    error_name=answer.reason,
                )
            delay = (
                min(_FIRST_DELAY * 2.0 ** (tries - 1), _LONGEST_DELAY)
                if answer.wait is None
                else answer.wait
            )
            await self._clock.sleep(delay * (1 + self._jitter() / 4))
        return answer

    async def once(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        seconds: float,
    ) -> int | None:
        """Send without retries, for cancellations; the status, or None without a response."""
        request = self._request(method, path, body, None, headers)
        request.extensions["timeout"] = httpx2.Timeout(seconds).as_dict()
        answer = await self._try(request)
        return answer.status if isinstance(answer, Answer) else None

    def _request(
        self,
        method: str,
        path: str,
        body: object,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
    ) -> httpx2.Request:
        sent = dict(headers or {})
        content = None
        if body is not None:
            content, sent["Content-Type"] = orjson.dumps(body), "application/json"
        return self._http.build_request(method, path, headers=sent, content=content, params=params)

    async def _try(self, request: httpx2.Request) -> Answer | _RetryDelay:
        try:
            answer = await fetch(
                self._http, request, max_bytes=self._max_bytes, seconds=self._answer_seconds
            )
        except AnswerTooLarge as e:
            raise SourceError(f"{self._product}: {e}.", hint=TOO_LARGE_HINT) from None
        except httpx2.TransportError as e:
            return _RetryDelay(reason=type(e).__name__)
        except httpx2.DecodingError:
            return _RetryDelay(reason="a truncated response")
        if answer.status_code in _BUSY:
            retry_after = answer.headers.get("Retry-After", "")
            wait = min(float(retry_after), _LONGEST_RETRY_AFTER) if retry_after.isdigit() else None
            return _RetryDelay(reason=f"HTTP {answer.status_code}", wait=wait)
        return Answer(status=answer.status_code, body=answer.content)


def checked_url(url: str, *, source: str, allow_http: bool = False) -> str:
    """The address without a trailing slash; plain http is for this machine only, unless allowed."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidInput(f"{source}: the address must be https://host:port.")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            f"{source}: the address contains a user or a password.",
            hint="They belong in the secrets.",
        )
    if parts.scheme == "http" and not allow_http and not is_loopback(parts.hostname):
        raise InvalidInput(
            f"{source}: plain http exposes credentials and data on the network.",
            hint="Use https.",
        )
    return url.rstrip("/")


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def scrubbed(text: str, *hidden: str | None) -> str:
    """The text without our credentials, in case a server or a proxy echoed them."""
    for secret in filter(None, hidden):
        text = text.replace(secret, "[redacted]")
    return text
