"""Runs of recipes: status, events and evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio.to_thread

from penstock.client._async.waiting import AsyncWork, failed, percent_and_step
from penstock.client.decoding import decode
from penstock.client.errors import Unreachable
from penstock.client.models import RunInfo
from penstock.client.work import Change

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Self

    from penstock.client._async.transport import AsyncTransport
    from penstock.client.errors import Failed
    from penstock.client.json_value import JsonObject
    from penstock.client.totals import RuleTotals, SideTotals
    from penstock.client.words import EvidenceForm, EvidenceFormulas, EvidenceTable


class AsyncRun(AsyncWork):
    """A run of a recipe as last fetched; `refresh` fetches it again."""

    _OPEN = ("staging", "ready", "executing")
    _GOOD = "completed"

    def __init__(self, transport: AsyncTransport, data: Mapping[str, object]) -> None:
        self.info: RunInfo = decode(RunInfo, data)
        super().__init__(transport, run_id=self.info.run_id)

    @property
    def id(self) -> int:
        return self.info.run_id

    @property
    def status(self) -> str:
        return self.info.status

    @property
    def totals(self) -> dict[str, SideTotals]:
        """What each side read, matched and left open; empty until it is known."""
        return cast("dict[str, SideTotals]", self.info.totals or {})

    @property
    def rules(self) -> tuple[RuleTotals, ...]:
        """What each rule matched, in their order; empty until it is known."""
        return cast("tuple[RuleTotals, ...]", self.info.rules or ())

    @property
    def data(self) -> JsonObject:
        """The server's answer as it came."""
        return self.info.raw

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.info.name!r} {self.status}>"

    async def refresh(self) -> Self:
        return self._now(await self._call("GET", "/api/runs/{run_id}"))

    async def how_far(self) -> tuple[float, str]:
        return percent_and_step(self.info.progress, "stage", self.status)

    async def events(self) -> AsyncIterator[Change]:
        """Yield every change until the run ends; the server pushes them."""
        while self.status in self._OPEN:
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

    def _title(self) -> str:
        return f"Run {self.id}"

    def _failure(self) -> Failed:
        error = self.info.error or {}
        return failed(
            f"Run {self.id} is {self.status}",
            error.get("message"),
            code=str(error.get("code") or "RUN_FAILED"),
            details=error,
        )

    async def cancel(self, reason: str = "") -> Self:
        return self._now(
            await self._call("POST", "/api/runs/{run_id}/cancel", json={"reason": reason})
        )

    async def retry(self) -> AsyncRun:
        """The same recipe on the sources as they are now, as a new run."""
        return AsyncRun(self._transport, await self._call("POST", "/api/runs/{run_id}/retry"))

    async def manifest(self) -> JsonObject:
        answer: JsonObject = await self._call("GET", "/api/runs/{run_id}/manifest")
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

    def _now(self, data: Mapping[str, object]) -> Self:
        self.info = decode(RunInfo, data)
        return self
