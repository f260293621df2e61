"""The configuration of a Trino or Starburst source: address, user and options."""

from __future__ import annotations

import base64
from collections.abc import Mapping  # noqa: TC003 - pydantic reads it
from dataclasses import dataclass, field
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field

from penstock.kit.errors import InvalidInput
from penstock.sources.config import secret
from penstock.sources.rest import is_loopback, scrubbed

Word = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]
Tag = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\x21-\x2b\x2d-\x7e]+$")]
Encoding = Literal["json+zstd", "json+lz4", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """`url` is the coordinator's `https://host:port`; plain http is for this machine only, unless
    `allow_http`.

    `starburst_role` is the default role. It is sent as `role_catalog=ROLE{…}`; plain Trino has no
    system roles and rejects them: there `role_catalog` must be null, and the role is required but
    not sent. `client_timeout` is the server's `query.client.timeout`, after which it abandons a
    query without requests. Without `encodings`, rows are sent by the coordinator instead of its
    spool.
    """

    url: str
    user: Word
    password: str | None = secret(None)
    token: str | None = secret(None)
    starburst_role: str | None = None
    role_catalog: Word | None = "system"
    source: Word = "graph-olap-export-worker"
    client_tags: Annotated[tuple[Tag, ...], Field(min_length=1)] = ("graph-olap-export",)
    catalog: Word | None = None
    schema: Word | None = None
    session: Mapping[Word, str] = field(default_factory=dict)
    encodings: tuple[Encoding, ...] = ("json+zstd", "json+lz4", "json")
    parallel: Annotated[int, Field(ge=1, le=32)] = 4
    allow_http: bool = False
    ca_file: str | None = None
    client_timeout: Annotated[float, Field(ge=1, le=86400)] = 300
    request_timeout: Annotated[float, Field(gt=0, le=600)] = 30
    retry_seconds: Annotated[float, Field(ge=0, le=600)] = 60

    def __post_init__(self) -> None:
        if self.password is not None and self.token is not None:
            raise InvalidInput("trino: set a password or a token, not both.")
        _check_url(self.url, allow_http=self.allow_http)

    @property
    def origin(self) -> str:
        return origin(self.url)

    @property
    def authorization(self) -> str | None:
        if self.token is not None:
            return f"Bearer {self.token}"
        if self.password is not None:
            return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        return None

    def scrub(self, text: str) -> str:
        """The text without our credentials, in case a server or a proxy echoed them."""
        sent = (self.authorization or "").partition(" ")[2]
        return scrubbed(text, sent, self.password, self.token)


def origin(uri: str) -> str:
    """Scheme, host and port of a URI in normalized form; empty if it has none."""
    try:
        parts = urlsplit(uri)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return ""
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _check_url(url: str, *, allow_http: bool) -> None:
    parts = urlsplit(url)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.path.strip("/")
        or parts.query
    ):
        raise InvalidInput("trino: url must be https://host:port and nothing more.")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            "trino: url contains a user or a password.", hint="Use the settings user and password."
        )
    if parts.scheme == "http" and not allow_http and not is_loopback(parts.hostname):
        raise InvalidInput(
            "trino: plain http exposes credentials and data on the network.",
            hint="Use https, or set allow_http if the network is trusted.",
        )
