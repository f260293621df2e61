"""Runs of recipes: status, events and evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.client._sync.waiting import until_settled
from penstock.client.decoding import decode
from penstock.client.errors import Failed, Unreachable
from penstock.client.work import Change, RunInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.client._sync.transport import Transport
    from penstock.client.words import EvidenceForm, EvidenceFormulas, EvidenceTable

OPEN = ("staging", "ready", "executing")


class Run:
    """A run of a recipe as last fetched; `refresh` fetches it again."""

    def __init__(self, transport: Transport, data: Mapping[str, Any]) -> None:
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

    def refresh(self) -> Run:
        return self._now(self._call("GET", "/api/runs/{run_id}"))

    def how_far(self) -> tuple[float, str]:
        return float(self.info.progress.get("percent") or 0.0), str(
            self.info.progress.get("stage") or self.status
        )

    def events(self) -> Iterator[Change]:
        """Yield every change until the run ends; the server pushes them."""
        while self.status in OPEN:
            try:
                yield from self._stream()
            except Unreachable:
                self.refresh()

    def _stream(self) -> Iterator[Change]:
        path, accept = {"run_id": self.id}, "text/event-stream"
        with self._transport.streamed(
            "GET", "/api/runs/{run_id}/events", path=path, accept=accept
        ) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    self._now(json.loads(line.removeprefix("data: ")))
                    percent, step = self.how_far()
                    yield Change(status=self.status, percent=percent, step=step)

    def wait(self, timeout: float | None = None, *, progress: bool = True) -> Run:
        """Until it is over; Failed when it did not complete."""
        until_settled(self, f"Run {self.id}", OPEN, timeout=timeout, show=progress)
        if self.status != "completed":
            error = self.info.error or {}
            message = (
                f"Run {self.id} is {self.status}: {error.get('message') or 'no reason was given'}"
            )
            raise Failed(
                message, code=str(error.get("code") or "RUN_FAILED"), status=200, details=error
            )
        return self

    def cancel(self, reason: str = "") -> Run:
        return self._now(self._call("POST", "/api/runs/{run_id}/cancel", json={"reason": reason}))

    def retry(self) -> Run:
        """The same recipe on the sources as they are now, as a new run."""
        return Run(self._transport, self._call("POST", "/api/runs/{run_id}/retry"))

    def manifest(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._call("GET", "/api/runs/{run_id}/manifest")
        return answer

    def evidence(
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
        return self._transport.content(
            "GET", "/api/runs/{run_id}/evidence/{evidence}", path=path, query=query
        )

    def report(self, to: str | Path | None = None) -> str:
        """The HTML report; written to a file when one is named."""
        text = (
            self._transport.content("GET", "/api/runs/{run_id}/report", path={"run_id": self.id})
        ).decode()
        if to is not None:
            Path(to).write_text(text)
        return text

    def _now(self, data: Mapping[str, Any]) -> Run:
        self.info = decode(RunInfo, data)
        return self

    def _call(self, method: str, template: str, *, json: object = None) -> Any:
        return (self._transport.call(method, template, path={"run_id": self.id}, json=json))["data"]
