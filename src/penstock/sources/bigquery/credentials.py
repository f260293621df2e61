"""Google access tokens, from a service account's key or from the machine."""

# mypy: disable-error-code="import-untyped, no-untyped-call"
from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import google.auth
import google.auth.credentials
import google.auth.exceptions
import google.auth.transport
import httpx2
import orjson
from google.oauth2 import service_account

from penstock.kit.errors import InvalidInput
from penstock.kit.outbound_http import CheckedSyncTransport
from penstock.sources.errors import SourceRefused, SourceUnavailable
from penstock.sources.rest import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.kit.outbound import Outbound
    from penstock.sources.bigquery.config import Config

_SCOPES = ("https://www.googleapis.com/auth/bigquery",)
_TOKEN_SECONDS = 30.0


class Credentials:
    """Shared by all requests of a source; fetches a new token when the current one has expired."""

    def __init__(self, config: Config, outbound: Outbound) -> None:
        self._outbound = outbound
        self._ambient = config.service_account is None and not config.is_emulator
        self._google = (
            None if config.service_account is None else _service_account(config.service_account)
        )
        self._lock = threading.Lock()

    async def headers(self) -> dict[str, str]:
        return await asyncio.to_thread(self.headers_now)

    def headers_now(self) -> dict[str, str]:
        """Blocks while fetching a token. Google's errors are not shown: they quote the request."""
        try:
            with self._lock:
                return self._headers()
        except google.auth.exceptions.DefaultCredentialsError:
            raise SourceRefused(
                "This machine has no Google credentials.", hint="Set the key of a service account."
            ) from None
        except google.auth.exceptions.TransportError:
            raise SourceUnavailable("Google's token service cannot be reached.") from None
        except google.auth.exceptions.GoogleAuthError as e:
            raise SourceRefused(
                "Google rejected the credentials.", error_name=type(e).__name__
            ) from None

    def _headers(self) -> dict[str, str]:
        if self._google is None and self._ambient:
            self._google, _ = google.auth.default(scopes=_SCOPES)
        if self._google is None:
            return {}
        if not self._google.valid:
            self._google.refresh(_Transport(self._outbound))
        sent = {"authorization": f"Bearer {self._google.token}"}
        billed = getattr(self._google, "quota_project_id", None)
        return {**sent, "x-goog-user-project": billed} if billed else sent


def _service_account(text: str) -> google.auth.credentials.Credentials:
    try:
        info = orjson.loads(text)
        if info["type"] != "service_account" or not _is_token_service(info["token_uri"]):
            raise ValueError
        credentials: google.auth.credentials.Credentials = (
            service_account.Credentials.from_service_account_info(info, scopes=_SCOPES)
        )
    except (KeyError, TypeError, ValueError, google.auth.exceptions.GoogleAuthError):
        raise InvalidInput(
            "bigquery: service_account is not the JSON key of a Google service account.",
            field="credentials.service_account",
        ) from None
    return credentials


def _is_token_service(uri: str) -> bool:
    parts = urlsplit(uri)
    host = parts.hostname or ""
    google_owns_it = parts.scheme == "https" and host.endswith((".googleapis.com", ".google.com"))
    return google_owns_it or is_loopback(host)


class _Reply(google.auth.transport.Response):
    def __init__(self, answer: httpx2.Response) -> None:
        self._answer = answer

    @property
    def status(self) -> int:
        return self._answer.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return self._answer.headers

    @property
    def data(self) -> bytes:
        return self._answer.content


class _Transport(google.auth.transport.Request):
    """An HTTP transport for Google's library with outbound checks: the key's token_uri is user
    input."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: object,
    ) -> _Reply:
        try:
            with httpx2.Client(
                timeout=timeout or _TOKEN_SECONDS,
                trust_env=False,
                transport=CheckedSyncTransport(self._outbound),
            ) as http:
                return _Reply(http.request(method, url, content=body, headers=headers))
        except httpx2.TransportError as e:
            raise google.auth.exceptions.TransportError(type(e).__name__) from None
