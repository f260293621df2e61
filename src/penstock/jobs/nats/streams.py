"""The two streams, each with one durable pull consumer: what they must be, and making them so.

A stream with another retention, other subjects or another discard policy belongs to somebody else
or would lose messages silently; it is reported and never changed. Limits and replicas are the
operator's to change on the server, so they are only set when we create a stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nats.js import api
from nats.js.errors import NotFoundError

from penstock.jobs.nats.errors import NatsMisconfigured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nats.js.client import JetStreamContext

CONSUMER = "penstock"
ACK_WAIT_SECONDS = 30.0
"""A control plane that vanished gives its messages up after this long."""
MOST_UNACKNOWLEDGED = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    label: str
    """`stage` or `exec`."""
    name: str
    subject: str
    staged: bool
    """Whether it carries the queues `stage_queues`, or all others."""
    stage_queues: tuple[str, ...]
    max_bytes: int
    replicas: int

    def which(self) -> dict[str, object]:
        """The parameters of the statements that look at the jobs of one stream."""
        return {"staged": self.staged, "stage_queues": list(self.stage_queues)}

    def config(self) -> api.StreamConfig:
        return api.StreamConfig(
            name=self.name,
            description="Announcements of jobs that are ready or run. Written by Penstock.",
            subjects=[self.subject],
            retention=api.RetentionPolicy.WORK_QUEUE,
            discard=api.DiscardPolicy.NEW,
            storage=api.StorageType.FILE,
            max_bytes=self.max_bytes,
            num_replicas=self.replicas,
        )

    def consumer(self) -> api.ConsumerConfig:
        return api.ConsumerConfig(
            durable_name=CONSUMER,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=ACK_WAIT_SECONDS,
            max_deliver=-1,
            max_ack_pending=MOST_UNACKNOWLEDGED,
        )


def streams(
    prefix: str, stage_queues: Sequence[str], *, max_bytes: int, replicas: int
) -> tuple[Stream, ...]:
    return tuple(
        Stream(
            label=label,
            name=f"{prefix}-{label}",
            subject=f"{prefix}.{label}",
            staged=label == "stage",
            stage_queues=tuple(stage_queues),
            max_bytes=max_bytes,
            replicas=replicas,
        )
        for label in ("stage", "exec")
    )


async def ensure(js: JetStreamContext, stream: Stream) -> None:
    """Create the stream and its consumer where they are missing; NatsMisconfigured where they
    are something else."""
    try:
        info = await js.stream_info(stream.name)
    except NotFoundError:
        info = await js.add_stream(stream.config())
    _compare(f"The NATS stream {stream.name}", info.config, stream.config(), _OF_STREAM)
    try:
        consumer = await js.consumer_info(stream.name, CONSUMER)
    except NotFoundError:
        consumer = await js.add_consumer(stream.name, stream.consumer())
    _compare(
        f"The consumer {CONSUMER} of the NATS stream {stream.name}",
        consumer.config,
        stream.consumer(),
        _OF_CONSUMER,
    )


_OF_STREAM = ("subjects", "retention", "discard")
_OF_CONSUMER = ("ack_policy", "ack_wait", "max_deliver")


def _compare(what: str, present: object, expected: object, names: Sequence[str]) -> None:
    differences = [
        f"{name} is {_shown(getattr(present, name))}, not {_shown(getattr(expected, name))}"
        for name in names
        if getattr(present, name) != getattr(expected, name)
    ]
    if differences:
        raise NatsMisconfigured(
            f"{what} is there with another configuration: {'; '.join(differences)}.",
            hint="Delete it, or choose other names with PENSTOCK_NATS_PREFIX.",
        )


def _shown(value: object) -> str:
    return str(getattr(value, "value", value))
