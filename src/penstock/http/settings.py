"""Settings of the HTTP server: what a slow or busy client may do."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.kit.config import Section


class HttpSettings(Section):
    """Limits of connections, heads and bodies."""

    header_timeout_seconds: Annotated[float, Field(ge=1, le=300)] = Field(
        10.0, description="How long the head of a request may take to come."
    )
    body_timeout_seconds: Annotated[float, Field(ge=1, le=3600)] = Field(
        30.0,
        description="How long the body of a request may pause, and how long it may come at less"
        " than 1,024 bytes a second.",
    )
    connections_per_address: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        256, description="Most connections that one address may have to one process."
    )
    connections_exempt: str = Field(
        "127.0.0.0/8, ::1",
        description="Addresses and networks whose connections are not counted, with commas between"
        " them: proxies, and hosts with many workers.",
    )
