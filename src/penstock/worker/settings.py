"""Settings of a worker."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.kit.config import Section


class WorkerSettings(Section):
    """What a worker is called and serves."""

    worker_queues: str = Field(
        "default,export,publish,stage,match,maintenance", description="Queues a worker serves."
    )
    worker_name: str | None = Field(
        None,
        description="What a worker is called. A process that starts under the name of an earlier"
        " one takes over what that one ran, at once: two that live must not share it. Unset"
        " means: a new name at each start.",
    )
    worker_poll_seconds: Annotated[float, Field(ge=1, le=55)] = Field(
        50.0,
        description="How long a worker waits for a job before it asks again. A proxy between it"
        " and the control plane must be more patient.",
    )
    worker_slots: Annotated[int, Field(ge=1, le=1000)] = Field(
        50, description="Jobs one worker runs at once."
    )
    worker_grace_seconds: Annotated[float, Field(ge=0, le=3600)] = Field(
        20.0,
        description="How long short work may end after SIGTERM before the rest is handed back.",
    )
    worker_host: str = Field("127.0.0.1", description="Address of a worker's health and metrics.")
    worker_port: Annotated[int, Field(ge=0, le=65535)] = Field(
        9090, description="Port of a worker's health; 0 picks one."
    )
