"""Runs of recipes: status, events and evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from penstock.client._async.waiting import until_settled
from penstock.client.decoding import decode
from penstock.client.errors import Failed, Unreachable
from penstock.client.work import Change, RunInfo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from penstock.client._async.transport import AsyncTransport
    from penstock.client.words import EvidenceForm, EvidenceFormulas, EvidenceTable

OPEN = ("staging", "ready", "executing")


class AsyncRun:
    """A run of a recipe as last fetched; `refresh` fetches it again."""

    def __init__(self, transport: AsyncTransport, data: Mapping[str, Any]) -> None:
        self._transport = transport
        self.info: RunInfo = decode(RunInfo, data)

    @property
    def id(self) -> int:
        return self.info.run_id

    @property
    def status(self) -> str:
        return self.info.status

    @property
    def totals(self) -> dict[str, Any]:
        return self.info.totals or {}

    @property
    def data(self) -> dict[str, Any]:
        """The server's answer as it came."""
        return self.info.raw

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.info.name!r} {self.status}>"

    async def refresh(self) -> AsyncRun:
        return self._now(await self._call("GET", "/api/runs/{run_id}"))

    async def how_far(self) -> tuple[float, str]:
        return float(self.info.progress.get("percent") or 0.0), str(
            self.info.progress.get("stage") or self.status
        )

    async def events(self) -> AsyncIterator[Change]:
        """Yield every change until the run ends; the server pushes them."""
        while self.status in OPEN:
            try:
                async for item in self._stream():
                    yield item
            except Unreachable:
                await self.refresh()

    async def _stream(self) -> AsyncIterator[Change]:
        path, accept = {"run_id": self.id}, "text/event-stream"
        async with self._transport.streamed(
            "GET", "/api/runs/{run_id}/events", path=path, accept=accept
        ) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    self._now(json.loads(line.removeprefix("data: ")))
                    percent, step = await self.how_far()
                    yield Change(status=self.status, percent=percent, step=step)

    async def wait(self, timeout: float | None = None, *, progress: bool = True) -> AsyncRun:
        """Until it is over; Failed when it did not complete."""
        await until_settled(self, f"Run {self.id}", OPEN, timeout=timeout, show=progress)
        if self.status != "completed":
            error = self.info.error or {}
            message = (
                f"Run {self.id} is {self.status}: {error.get('message') or 'no reason was given'}"
            )
            raise Failed(
                message, code=str(error.get("code") or "RUN_FAILED"), status=200, details=error
            )
        return self

    async def cancel(self, reason: str = "") -> AsyncRun:
        return self._now(
            await self._call("POST", "/api/runs/{run_id}/cancel", json={"reason": reason})
        )

    async def retry(self) -> AsyncRun:
        """The same recipe on the sources as they are now, as a new run."""
        return AsyncRun(self._transport, await self._call("POST", "/api/runs/{run_id}/retry"))

    async def manifest(self) -> dict[str, Any]:
        answer: dict[str, Any] = await self._call("GET", "/api/runs/{run_id}/manifest")
        return answer

    async def evidence(
        self,
        table: EvidenceTable | str = "matched",
        *,
        form: EvidenceForm | str = "csv",
        limit: int | None = None,
        formulas: EvidenceFormulas | None = None,
    ) -> bytes:
        """One table of evidence, as a file of that form. In CSV, text that a spreadsheet would run
        as a formula gets an apostrophe; `formulas="keep"` writes it as it is."""
        path = {"run_id": self.id, "evidence": table}
        query = {"format": form, "limit": limit, "formulas": formulas}
        return await self._transport.content(
            "GET", "/api/runs/{run_id}/evidence/{evidence}", path=path, query=query
        )

    async def report(self, to: str | Path | None = None) -> str:
        """The HTML report; written to a file when one is named."""
        text = (
            await self._transport.content(
                "GET", "/api/runs/{run_id}/report", path={"run_id": self.id}
            )
        ).decode()
        if to is not None:
            await anyio.to_thread.run_sync(Path(to).write_text, text)
        return text

    def _now(self, data: Mapping[str, Any]) -> AsyncRun:
        self.info = decode(RunInfo, data)
        return self

    async def _call(self, method: str, template: str, *, json: object = None) -> Any:
        return (await self._transport.call(method, template, path={"run_id": self.id}, json=json))[
            "data"
        ]
