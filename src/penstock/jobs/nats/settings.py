"""What the transport needs of the settings."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.jobs.nats.streams import Stream, streams
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import SecretStr

    from penstock.jobs.settings import TransportSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsSettings:
    servers: tuple[str, ...]
    streams: tuple[Stream, ...]
    user: str | None = None
    password: SecretStr | None = None
    token: SecretStr | None = None
    credentials: Path | None = None
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    @classmethod
    def of(cls, settings: TransportSettings) -> NatsSettings:
        return cls(
            servers=tuple(
                server.strip() for server in (settings.nats_url or "").split(",") if server.strip()
            ),
            streams=streams(
                settings.nats_prefix,
                [queue.strip() for queue in settings.nats_stage_queues.split(",") if queue.strip()],
                max_bytes=settings.nats_stream_mb * 1024 * 1024,
                replicas=settings.nats_replicas,
            ),
            user=settings.nats_user,
            password=settings.nats_password,
            token=settings.nats_token,
            credentials=settings.nats_credentials,
            tls_ca=settings.nats_tls_ca,
            tls_cert=settings.nats_tls_cert,
            tls_key=settings.nats_tls_key,
        )

    def tls(self) -> ssl.SSLContext | None:
        """The context of a connection with files of our own; None leaves the machine's."""
        if self.tls_ca is None and self.tls_cert is None:
            return None
        try:
            context = ssl.create_default_context(cafile=self.tls_ca)
            if self.tls_cert is not None:
                context.load_cert_chain(self.tls_cert, self.tls_key)
        except (OSError, ssl.SSLError) as e:
            raise InvalidInput(
                f"The TLS files of NATS cannot be used: {e}",
                hint="Check the files that PENSTOCK_NATS_TLS_CA, _CERT and _KEY name.",
            ) from e
        return context

    def secret(self, value: SecretStr | None) -> str | None:
        return None if value is None else value.get_secret_value()
