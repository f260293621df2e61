"""Settings of the kernel of jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from penstock.kit.config import Section


class FairShareSettings(Section):
    """The order of jobs of different users."""

    fair_share_seconds: Annotated[float, Field(ge=0, le=600)] = Field(
        5.0,
        description="How far apart the waiting jobs of one user are put in the order of a queue,"
        " so that others come in between; 0 means first come, first served.",
    )


class JobSettings(Section):
    """Sizes, leases and paces of the kernel."""

    max_payload_bytes: Annotated[int, Field(ge=1024, le=64 * 1024 * 1024)] = Field(
        1024 * 1024, description="Largest payload, state or result of a job."
    )
    bell_debounce_ms: Annotated[int, Field(ge=0, le=1000)] = Field(
        8, description="How long wake-ups are gathered."
    )
    reap_seconds: Annotated[float, Field(gt=0, le=60)] = Field(
        5.0, description="Pace of the reaper."
    )
    lease_seconds: dict[str, Annotated[int, Field(ge=2, le=86_400)]] = Field(
        default_factory=dict,
        description="How long a job stays with a worker that is not heard of, by kind, where it is"
        " not the default, as"
        ' {"maintenance": 1800}. Longer than the kind\'s heartbeat; it holds for jobs that are'
        " enqueued from then on.",
    )
    retention_days: Annotated[int, Field(ge=1, le=3650)] = Field(
        90, description="How long ended jobs are kept."
    )


class TransportSettings(Section):
    """What announces jobs that became ready."""

    queue: Literal["postgresql", "nats"] = Field(
        "postgresql",
        description="What announces jobs that became ready: notifications of PostgreSQL, or NATS"
        " JetStream as well. Jobs are kept in PostgreSQL either way.",
    )
    nats_url: str | None = Field(
        None,
        description="Servers of NATS, with commas between them: nats://nats-0:4222,nats://nats-1:4222."
        " tls:// asks for TLS.",
    )
    nats_user: str | None = Field(None, description="User of NATS.")
    nats_password: SecretStr | None = Field(None, description="The password of that user.")
    nats_token: SecretStr | None = Field(None, description="A token instead of a user of NATS.")
    nats_credentials: Path | None = Field(
        None, description="A .creds file of NATS (JWT and seed) instead of a user."
    )
    nats_tls_ca: Path | None = Field(
        None, description="Authority of the certificate of NATS in PEM form, if it is private."
    )
    nats_tls_cert: Path | None = Field(
        None, description="Our certificate in PEM form, for a NATS that wants one."
    )
    nats_tls_key: Path | None = Field(None, description="The key of that certificate.")
    nats_prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")] = Field(
        "penstock",
        description="What the streams of NATS begin with: penstock-stage and penstock-exec.",
    )
    nats_stage_queues: str = Field(
        "stage",
        description="Queues that are announced in the stream stage, with commas between them; all"
        " others are announced in the stream exec.",
    )
    nats_stream_mb: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        256,
        description="Largest size of a stream that is created, in megabytes; a million"
        " announcements need about 200. What does not fit waits in the database.",
    )
    nats_replicas: Annotated[int, Field(ge=1, le=5)] = Field(
        1, description="Copies of a stream that is created: 3 for a cluster of NATS."
    )

    @model_validator(mode="after")
    def _nats_is_complete(self) -> Self:
        if self.queue == "nats" and not (self.nats_url or "").strip(" ,"):
            raise ValueError("queue is nats, and nats_url does not say where NATS is")
        if (self.nats_tls_cert is None) != (self.nats_tls_key is None):
            raise ValueError("nats_tls_cert and nats_tls_key are set together, or neither")
        if (self.nats_user is None) != (self.nats_password is None):
            raise ValueError("nats_user and nats_password are set together, or neither")
        return self
