from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from penstock.kit.errors import InvalidInput
from penstock.sources.config import secret
from penstock.sources.rest import checked_url, is_loopback

_GOOGLE = ".googleapis.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """`project` is billed for the queries; `dataset` is the default for unqualified tables.

    `service_account` is the JSON key of a service account; without it the machine's credentials are
    used. The endpoints are Google's, or an emulator's on this machine (plain http), to which no
    ambient credentials are sent.
    """

    project: Annotated[str, Field(pattern=r"^[a-z0-9.:\-]{4,100}$")]
    dataset: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$", max_length=1024)] | None = None
    location: Annotated[str, Field(pattern=r"^[A-Za-z0-9\-]{1,40}$")] | None = None
    service_account: str | None = secret(None)
    rest_endpoint: str = "https://bigquery.googleapis.com"
    storage_endpoint: str = "https://bigquerystorage.googleapis.com"
    maximum_bytes_billed: Annotated[int, Field(ge=1)] | None = None
    request_timeout: Annotated[float, Field(gt=0, le=600)] = 60
    retry_seconds: Annotated[float, Field(ge=0, le=600)] = 60
    silence_seconds: Annotated[float, Field(gt=0)] = 300.0

    def __post_init__(self) -> None:
        _check_endpoint(self.rest_endpoint)
        _check_endpoint(self.storage_endpoint)

    @property
    def is_emulator(self) -> bool:
        return urlsplit(self.rest_endpoint).scheme == "http"

    @property
    def storage_target(self) -> str:
        parts = urlsplit(self.storage_endpoint)
        return f"{parts.hostname}:{parts.port or 443}"

    @property
    def storage_is_plain(self) -> bool:
        return urlsplit(self.storage_endpoint).scheme == "http"


def _check_endpoint(url: str) -> None:
    """Ensure that a Google token is sent only to Google."""
    checked_url(url, source="bigquery")
    host = urlsplit(url).hostname or ""
    if not is_loopback(host) and not host.endswith(_GOOGLE):
        raise InvalidInput(
            "bigquery: an endpoint must be a *.googleapis.com host, or an emulator on this machine."
        )
