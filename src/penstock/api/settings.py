"""Settings of the API: processes, who may call it, and how often."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, SecretStr, model_validator

from penstock.http.settings import HttpSettings
from penstock.kit.config import LEAST_SECRET, Network, Section, is_loopback, networks
from penstock.kit.settings import (
    ControlPlaneSettings,
    DatabaseSettings,
    ListenSettings,
    LogSettings,
    TlsSettings,
)


class ProcessSettings(Section):
    """How many processes serve the API."""

    processes: Annotated[int, Field(ge=1, le=64)] = Field(
        1,
        description="Processes of a control plane, on one port; each may open `database_pool`"
        " connections.",
    )


class AccessSettings(ListenSettings, DatabaseSettings):
    """Whom the API lets in: operators, browsers, proxies."""

    operator_token: SecretStr | None = Field(
        None, description="What operators show; it carries the role ops."
    )
    operator_token_file: Path | None = Field(
        None,
        description="A file with the operator token, read again when it changes; it wins over"
        " `operator_token`. `penstock up` sets it to a file of its home.",
    )
    login_link_seconds: Annotated[int, Field(ge=10, le=3600)] = Field(
        300,
        description="How long a login link of `penstock up` and `penstock login` can be opened,"
        " once.",
    )
    session_seconds: Annotated[int, Field(ge=60, le=2_592_000)] = Field(
        43_200, description="How long a browser that opened a login link stays signed in."
    )
    local_only: bool | None = Field(
        None,
        description="Whether only programs of this machine may call: requests with a header of a"
        " proxy, or under the name of another host, are refused. Unset means: while the database"
        " is embedded, `host` is a loopback address and `trusted_headers` is off.",
    )
    trusted_headers: bool = Field(
        False,
        description="Whether X-Username and X-User-Role of a proxy are believed; needs"
        " `trusted_proxies`, `trusted_proxy_secret` or both, and then both must hold.",
    )
    trusted_proxies: str | None = Field(
        None, description="Addresses of the proxies that set these headers: 10.0.0.7,10.1.0.0/16."
    )
    trusted_proxy_secret: SecretStr | None = Field(
        None, description="What the proxy sends as X-Penstock-Proxy-Secret, at least 16 characters."
    )

    @model_validator(mode="after")
    def _proxy_is_named(self) -> Self:
        networks(self.trusted_proxies)
        if self.trusted_headers and not self.trusted_proxies and self.trusted_proxy_secret is None:
            raise ValueError(
                "trusted_headers is on, and nothing tells the proxy from others: set"
                " trusted_proxies to its address or trusted_proxy_secret to a shared secret"
            )
        secret = self.trusted_proxy_secret
        if secret is not None and len(secret.get_secret_value()) < LEAST_SECRET:
            raise ValueError(f"trusted_proxy_secret must have at least {LEAST_SECRET} characters")
        return self

    @property
    def proxy_networks(self) -> tuple[Network, ...]:
        return networks(self.trusted_proxies)

    @property
    def is_local_only(self) -> bool:
        if self.local_only is not None:
            return self.local_only
        return self.database_url is None and is_loopback(self.host) and not self.trusted_headers


class RateSettings(Section):
    """How much one user or address may send."""

    user_requests_per_second: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        200,
        description="Requests that one user may send, on average; twice as many at once. 0"
        " means no limit. Workers, graph servers and the operator token have none. Each process"
        " counts for itself.",
    )
    address_requests_per_second: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        1000,
        description="The same for one address, whoever is behind it; this machine's own addresses"
        " have no limit.",
    )
    failed_logins_per_minute: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        60,
        description="Wrong or missing credentials that one address may send; beyond it only"
        " credentials that were right in the last hour are tried. 0 means no limit.",
    )


class ServerSettings(
    LogSettings,
    RateSettings,
    AccessSettings,
    ControlPlaneSettings,
    HttpSettings,
    TlsSettings,
    ProcessSettings,
    ListenSettings,
    DatabaseSettings,
):
    """What a process that serves the API reads."""
