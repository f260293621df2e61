from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from penstock.kit.errors import InvalidInput
from penstock.sources.config import secret
from penstock.sources.rest import checked_url, scrubbed


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """`url` is `https://host:port`; plain http is for this machine only, unless `allow_http`.

    `api_key` is the encoded form that Elasticsearch shows once, or `id:key`. `keep_alive_minutes`
    is how long an unused point in time lives: longer than a chunk may wait for a worker.
    """

    url: str
    user: str | None = None
    password: str | None = secret(None)
    api_key: str | None = secret(None)
    allow_http: bool = False
    ca_file: str | None = None
    keep_alive_minutes: Annotated[int, Field(ge=1, le=1440)] = 10
    page_bytes: Annotated[int, Field(ge=1024, le=256 * 1024 * 1024)] = 8 * 1024 * 1024
    page_rows: Annotated[int, Field(ge=1, le=10_000)] = 10_000
    request_timeout: Annotated[float, Field(gt=0, le=600)] = 60
    retry_seconds: Annotated[float, Field(ge=0, le=600)] = 60

    def __post_init__(self) -> None:
        if self.password is not None and self.api_key is not None:
            raise InvalidInput("elasticsearch: set a password or an API key, not both.")
        if (self.password is None) != (self.user is None):
            raise InvalidInput("elasticsearch: set both user and password, or neither.")
        checked_url(self.url, source="elasticsearch", allow_http=self.allow_http)

    @property
    def keep_alive(self) -> str:
        return f"{self.keep_alive_minutes}m"

    @property
    def authorization(self) -> str | None:
        if self.api_key is not None:
            return f"ApiKey {_encoded(self.api_key) if ':' in self.api_key else self.api_key}"
        if self.password is not None:
            return f"Basic {_encoded(f'{self.user}:{self.password}')}"
        return None

    def scrub(self, text: str) -> str:
        sent = (self.authorization or "").partition(" ")[2]
        return scrubbed(
            text, sent, self.password, self.api_key, (self.api_key or "").partition(":")[2]
        )


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
