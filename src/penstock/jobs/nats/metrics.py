"""Metrics of the transport, `penstock_nats_…`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

STREAM = ["stream"]


class NatsMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._connected = Gauge(
            "penstock_nats_connected",
            "Whether this process has a connection to NATS.",
            registry=registry,
        )
        self.published = Counter(
            "penstock_nats_published",
            "Announcements that a stream has taken.",
            STREAM,
            registry=registry,
        )
        self.dropped = Counter(
            "penstock_nats_dropped",
            "Announcements of jobs that were over before they were sent.",
            STREAM,
            registry=registry,
        )
        self.announced_again = Counter(
            "penstock_nats_announced_again",
            "Jobs whose messages were lost, and which were announced once more.",
            STREAM,
            registry=registry,
        )
        self.delivered = Counter(
            "penstock_nats_delivered", "Messages received.", STREAM, registry=registry
        )
        self.acknowledged = Counter(
            "penstock_nats_acknowledged",
            "Messages whose jobs are over.",
            STREAM,
            registry=registry,
        )
        self.held = Gauge(
            "penstock_nats_held_messages",
            "Messages that this process holds until their jobs are over.",
            STREAM,
            registry=registry,
        )
        self.pending = Gauge(
            "penstock_nats_pending_messages",
            "Messages of the stream that nobody has received yet.",
            STREAM,
            registry=registry,
        )
        self.unacknowledged = Gauge(
            "penstock_nats_unacknowledged_messages",
            "Messages of the stream whose jobs are ready or run.",
            STREAM,
            registry=registry,
        )
        self.outbox = Gauge(
            "penstock_nats_outbox_rows",
            "Announcements that wait for NATS, as the last look counted them.",
            registry=registry,
        )

    def connected(self, now: bool) -> None:
        self._connected.set(now)
