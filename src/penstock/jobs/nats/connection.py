"""The connection to NATS: one for each control plane, made again whenever it is lost.

The client's own reconnecting is off: it would keep what was half done, and it hides for how long a
server has been away. Here a lost connection ends the task, `BackgroundTask` waits and begins anew,
and meanwhile `/ready` shows the error. Each beginning makes sure that the streams are there, so a
deleted stream comes back.

Every control plane listens to all announcements and wakes its waiting claimers, as it does for a
NOTIFY. The messages themselves go to one of them (`deliveries`).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import nats.errors
from nats.aio.client import Client

from penstock.jobs.nats.errors import NatsUnavailable, explain, explained
from penstock.jobs.nats.streams import ensure
from penstock.kit import logging
from penstock.kit.background import BackgroundTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from nats.aio.msg import Msg
    from nats.js.client import JetStreamContext

    from penstock.jobs.nats.metrics import NatsMetrics
    from penstock.jobs.nats.settings import NatsSettings
    from penstock.kit.background import BackgroundHealth

log = logging.get(__name__)
CONNECT_SECONDS = 3
CHECK_SECONDS = 5.0
CHECK_TIMEOUT = 3
CLOSE_SECONDS = 2.0
API_SECONDS = 5.0
OUR_CERTIFICATE = (
    "A server that wants certificates of its clients does so while PENSTOCK_NATS_TLS_CERT and"
    " PENSTOCK_NATS_TLS_KEY are not set, or are of an authority that it does not know."
)
QUEUE_HEADER = "Penstock-Queue"
ORDER_HEADER = "Penstock-Order"


class Connection:
    def __init__(
        self,
        settings: NatsSettings,
        *,
        wake: Callable[[str, int], None],
        health: BackgroundHealth,
        metrics: NatsMetrics,
    ) -> None:
        self._settings = settings
        self._wake = wake
        self._metrics = metrics
        self._task = BackgroundTask("nats connection", self._run, health)
        self._client = Client()
        self._js: JetStreamContext | None = None
        self._ready = asyncio.Event()
        self._lost = asyncio.Event()
        self._error: Exception | None = None

    @property
    def ready(self) -> bool:
        return self._ready.is_set()

    def start(self) -> None:
        self._task.start()

    async def stop(self) -> None:
        await self._task.stop()

    async def jetstream(self) -> JetStreamContext:
        """Wait until there is a connection."""
        while self._js is None:
            await self._ready.wait()
        return self._js

    def begin_anew(self) -> None:
        """Connect again, and make sure of the streams."""
        self._lost.set()

    async def flush(self) -> None:
        """Send what was published without waiting for an answer."""
        with explained("sending"):
            await self._client.flush(CHECK_TIMEOUT)

    async def _run(self) -> None:
        self._client, self._error = Client(), None
        self._lost.clear()
        try:
            await self._connect()
            js = self._client.jetstream(timeout=API_SECONDS)
            for stream in self._settings.streams:
                with explained(f"looking for the stream {stream.name}"):
                    await ensure(js, stream)
                    await self._client.subscribe(stream.subject, cb=self._on_message)
            self._js = js
            self._ready.set()
            self._metrics.connected(True)
            self._task.works()
            log.info("nats_connected", streams=[s.name for s in self._settings.streams])
            await self._watch()
        finally:
            self._js = None
            self._ready.clear()
            self._metrics.connected(False)
            with suppress(Exception):
                await asyncio.wait_for(self._client.close(), CLOSE_SECONDS)

    async def _connect(self) -> None:
        settings = self._settings
        tls = settings.tls()
        credentials = settings.credentials
        try:
            async with asyncio.timeout(2 * CONNECT_SECONDS):
                await self._client.connect(
                    list(settings.servers),
                    name="penstock",
                    error_cb=self._on_error,
                    closed_cb=self._on_closed,
                    allow_reconnect=False,
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    connect_timeout=CONNECT_SECONDS,
                    user=settings.user,
                    password=settings.secret(settings.password),
                    token=settings.secret(settings.token),
                    user_credentials=None if credentials is None else str(credentials),
                    tls=tls,
                )
        except nats.errors.NoServersError:
            raise NatsUnavailable(
                f"No NATS server can be reached at {self._where()}: {self._error or 'no answer'}.",
                hint="Check PENSTOCK_NATS_URL.",
            ) from self._error
        except ConnectionError as e:
            raise NatsUnavailable(
                f"NATS at {self._where()} closed the connection: {e}.", hint=OUR_CERTIFICATE
            ) from e
        except (nats.errors.Error, OSError, TimeoutError) as e:
            raise explain(e, f"connecting to {self._where()}") from e

    def _where(self) -> str:
        """The servers without what an address may carry of credentials."""
        return ", ".join(server.rpartition("@")[2] for server in self._settings.servers)

    async def _watch(self) -> None:
        """Until the connection is lost. A network that drops everything closes nothing, so the
        server is asked now and then."""
        while not self._lost.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._lost.wait(), CHECK_SECONDS)
                break
            await self.flush()
        if self._error is not None:
            raise explain(self._error, "listening")
        raise NatsUnavailable("The connection to NATS was closed.")

    async def _on_error(self, error: Exception) -> None:
        self._error = error
        if "permissions violation" in str(error).lower():
            self._lost.set()

    async def _on_closed(self) -> None:
        self._error = self._client.last_error or self._error
        self._lost.set()

    async def _on_message(self, message: Msg) -> None:
        headers = message.headers or {}
        queue, order_key = headers.get(QUEUE_HEADER), headers.get(ORDER_HEADER, "")
        if queue is not None and order_key.lstrip("-").isdigit():
            self._wake(queue, int(order_key))
