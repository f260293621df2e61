"""Settings that several packages read: addresses, the database, keys, logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from penstock.kit.config import Section, default_home, is_loopback
from penstock.kit.errors import InvalidInput
from penstock.kit.outbound import OutboundPolicy, allow_list


class HomeSettings(Section):
    """The folder of one installation."""

    home: Path = Field(
        default_factory=default_home, description="Where the embedded mode keeps everything."
    )


class DatabaseSettings(HomeSettings):
    """PostgreSQL: one that runs somewhere, or ours in the home folder."""

    database_url: SecretStr | None = Field(
        None, description="A PostgreSQL 15+ to use instead of the embedded one."
    )
    database_direct_url: SecretStr | None = Field(
        None,
        description="The same database without the pooler: set it when PENSTOCK_DATABASE_URL is a"
        " PgBouncer in transaction mode. Notifications, turns and migrations go there.",
    )
    database_pool: Annotated[int, Field(ge=2, le=200)] = Field(
        12, description="Connections a control plane may open."
    )

    @model_validator(mode="after")
    def _pooler_is_in_front(self) -> Self:
        if self.database_direct_url is not None and self.database_url is None:
            raise ValueError(
                "database_direct_url is set without database_url, the address of the pooler"
            )
        return self

    @property
    def database_dsn(self) -> str | None:
        """The address of the server itself, past any pooler; None: the embedded one."""
        url = self.database_direct_url or self.database_url
        return None if url is None else url.get_secret_value()

    @property
    def database_pooler(self) -> str | None:
        """The address of the pooler in front of the database, if there is one."""
        if self.database_url is None or self.database_direct_url is None:
            return None
        return self.database_url.get_secret_value()


class ListenSettings(Section):
    """Where the control plane listens."""

    host: str = Field("127.0.0.1", description="Address the control plane listens on.")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(
        8080, description="Port the control plane listens on."
    )


class TlsSettings(Section):
    """TLS that the control plane itself speaks."""

    tls_cert: Path | None = Field(
        None,
        description="Certificate in PEM form, with its chain: the control plane then speaks HTTPS"
        " alone. Unset means: HTTP, for a proxy in front that has the certificate.",
    )
    tls_key: Path | None = Field(
        None, description="The certificate's key in PEM form, without a password."
    )

    @model_validator(mode="after")
    def _certificate_has_its_key(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key are set together, or neither")
        return self

    @property
    def scheme(self) -> str:
        """What the control plane itself speaks."""
        return "http" if self.tls_cert is None else "https"


class ControlPlaneSettings(TlsSettings, ListenSettings):
    """Where workers and graph servers find the control plane, and what they show it."""

    url: str | None = Field(None, description="Where clients and workers find the control plane.")
    service_token: SecretStr | None = Field(
        None, description="What workers show; unset means no internal API."
    )
    service_token_file: Path | None = Field(
        None,
        description="A file with the token that a worker shows, read again when it changes, such"
        " as a projected token of a service account (`token_review_workers`); it wins over"
        " `service_token` there.",
    )

    @property
    def control_plane_url(self) -> str:
        """Where workers and graph servers find the control plane."""
        return self.url or f"{self.scheme}://{self.host}:{self.port}"


class SecretKeySettings(Section):
    """The keys that seal credentials."""

    secret_key: SecretStr | None = Field(
        None,
        description="Seals the credentials of data sources: 32 bytes in base64, see `penstock"
        " rekey --new-key`.",
    )
    secret_keys_old: SecretStr | None = Field(
        None,
        description="Earlier keys, with commas between them; they open until `penstock rekey` has"
        " run.",
    )

    @property
    def secret_keys(self) -> list[str]:
        """The key that seals, then those that only open; none without a key."""
        if self.secret_key is None:
            return []
        old = self.secret_keys_old.get_secret_value() if self.secret_keys_old else ""
        return [
            self.secret_key.get_secret_value(),
            *(key for key in map(str.strip, old.split(",")) if key),
        ]


class OutboundSettings(ListenSettings):
    """Where our own requests may lead."""

    allow_private_sources: bool | None = Field(
        None,
        description="Whether data sources may lead to this machine's files and to private"
        " networks; unset means: only while `host` is a loopback address.",
    )
    outbound_allow: str = Field(
        "",
        description="Networks and host names that data sources, callbacks and spooled results may"
        " lead to although they are private, with commas between them: 10.1.0.0/16,"
        " minio.corp.example, .corp.example for all below it.",
    )
    outbound_answer_mb: Annotated[int, Field(ge=1, le=4096)] = Field(
        256,
        description="Largest body that is read from one answer of a data source over HTTP, in"
        " megabytes.",
    )

    @model_validator(mode="after")
    def _outbound_allow_is_readable(self) -> Self:
        try:
            allow_list(self.outbound_allow)
        except InvalidInput as e:
            raise ValueError(f"outbound_allow: {e.message} {e.hint}") from None
        return self

    @property
    def outbound_policy(self) -> OutboundPolicy:
        """Where data sources and callbacks may lead."""
        return OutboundPolicy(
            private=self.private_sources,
            allow=allow_list(self.outbound_allow),
            answer_bytes=self.outbound_answer_mb * 1024 * 1024,
        )

    @property
    def private_sources(self) -> bool:
        return (
            is_loopback(self.host)
            if self.allow_private_sources is None
            else self.allow_private_sources
        )


class LogSettings(Section):
    """What is logged, and how."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Least level that is logged."
    )
    log_form: Literal["json", "text"] = Field(
        "json", description="JSON for machines, text for people."
    )
