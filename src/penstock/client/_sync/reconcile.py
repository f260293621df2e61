"""Reconciliation: recipes, runs, and the evidence that they leave."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.client._sync.listing import listed
from penstock.client._sync.waiting import until_settled
from penstock.client.errors import Failed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.client._sync.transport import Transport

OPEN = ("staging", "ready", "executing")


class Run:
    def __init__(self, transport: Transport, data: dict[str, Any]) -> None:
        self._transport = transport
        self.data: dict[str, Any] = data

    @property
    def id(self) -> int:
        number: int = self.data["run_id"]
        return number

    @property
    def status(self) -> str:
        word: str = self.data["status"]
        return word

    @property
    def totals(self) -> dict[str, Any]:
        return self.data.get("totals") or {}

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.data.get('name', '')!r} {self.status}>"

    def refresh(self) -> Run:
        self.data = self._call("GET", "/api/runs/{run_id}")
        return self

    def how_far(self) -> tuple[float, str]:
        return float(self.data["progress"].get("percent") or 0.0), self.status

    def wait(self, timeout: float | None = None, *, progress: bool = True) -> Run:
        """Until it is over; Failed when it did not complete."""
        until_settled(self, f"Run {self.id}", OPEN, timeout=timeout, show=progress)
        if self.status != "completed":
            error = self.data.get("error") or {}
            message = f"Run {self.id} is {self.status}: {error.get('message') or 'no reason was given'}"
            raise Failed(message, code=str(error.get("code") or "RUN_FAILED"), status=200, details=error)
        return self

    def cancel(self, reason: str = "") -> Run:
        self.data = self._call("POST", "/api/runs/{run_id}/cancel", json={"reason": reason})
        return self

    def retry(self) -> Run:
        """The same recipe on the sources as they are now, as a new run."""
        return Run(self._transport, self._call("POST", "/api/runs/{run_id}/retry"))

    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = self._call("GET", "/api/runs/{run_id}/manifest")
        return found

    def evidence(self, table: str = "matched", *, form: str = "csv", limit: int | None = None) -> bytes:
        """`matched`, `unmatched_left`, `unmatched_right`, `duplicates` or `ambiguous`, as a file of that form."""
        path = {"run_id": self.id, "evidence": table}
        query = {"format": form, "limit": limit}
        return self._transport.content("GET", "/api/runs/{run_id}/evidence/{evidence}", path=path, query=query)

    def report(self, to: str | Path | None = None) -> str:
        """The HTML report; written to a file when one is named."""
        text = (self._transport.content("GET", "/api/runs/{run_id}/report", path={"run_id": self.id})).decode()
        if to is not None:
            Path(to).write_text(text)
        return text

    def _call(self, method: str, template: str, *, json: object = None) -> Any:
        return (self._transport.call(method, template, path={"run_id": self.id}, json=json))["data"]


class Reconcile:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def run(
        self,
        recipe: str | Mapping[str, Any],
        *,
        version: int | None = None,
        sources: Mapping[str, Any] | None = None,
        staging: Mapping[str, int] | None = None,
        callback_url: str | None = None,
        **parameters: Any,
    ) -> Run:
        """A saved recipe by its id, or one as it is written; what is no word of the request is a run parameter."""
        body: dict[str, Any] = {"recipe_id": recipe} if isinstance(recipe, str) else {"recipe": dict(recipe)}
        optional = {"version": version, "sources": sources, "staging": staging, "callback_url": callback_url}
        body |= {key: value for key, value in optional.items() if value is not None}
        if parameters:
            body["parameters"] = parameters
        return Run(self._transport, (self._transport.call("POST", "/api/runs", json=body))["data"])

    def get(self, run_id: int) -> Run:
        answer = self._transport.call("GET", "/api/runs/{run_id}", path={"run_id": run_id})
        return Run(self._transport, answer["data"])

    def runs(self, **filters: Any) -> Iterator[Run]:
        for item in listed(self._transport, "/api/runs", **filters):
            yield Run(self._transport, item)

    def save(self, recipe: Mapping[str, Any], recipe_id: str | None = None) -> dict[str, Any]:
        """A new recipe, or the next version of one."""
        body = {"recipe": dict(recipe)}
        if recipe_id is None:
            answer = self._transport.call("POST", "/api/recipes", json=body)
        else:
            path = {"recipe_id": recipe_id}
            answer = self._transport.call("PUT", "/api/recipes/{recipe_id}", path=path, json=body)
        saved: dict[str, Any] = answer["data"]
        return saved

    def recipe(self, recipe_id: str, version: int | None = None) -> dict[str, Any]:
        found: dict[str, Any] = self._recipe("GET", "/api/recipes/{recipe_id}", recipe_id, version=version)
        return found

    def recipes(self, **filters: Any) -> Iterator[dict[str, Any]]:
        yield from listed(self._transport, "/api/recipes", **filters)

    def versions(self, recipe_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._recipe("GET", "/api/recipes/{recipe_id}/versions", recipe_id)
        return found

    def explain(self, recipe: str | Mapping[str, Any]) -> list[dict[str, Any]]:
        """The SQL that a recipe becomes."""
        if isinstance(recipe, str):
            found: list[dict[str, Any]] = self._recipe("GET", "/api/recipes/{recipe_id}/explain", recipe)
            return found
        answer = self._transport.call("POST", "/api/recipes/explain", json={"recipe": dict(recipe)})
        steps: list[dict[str, Any]] = answer["data"]
        return steps

    def validate(self, recipe: Mapping[str, Any]) -> dict[str, Any]:
        """Every fault at once, each with a suggestion."""
        answer = self._transport.call("POST", "/api/recipes/validate", json={"recipe": dict(recipe)})
        found: dict[str, Any] = answer["data"]
        return found

    def preview(self, recipe: str | Mapping[str, Any], *, rows: int = 1000, **parameters: Any) -> dict[str, Any]:
        """What a recipe matches and leaves open among the first rows of each side; nothing is kept."""
        body: dict[str, Any] = {"recipe_id": recipe} if isinstance(recipe, str) else {"recipe": dict(recipe)}
        body |= {"rows": rows, "parameters": parameters}
        found: dict[str, Any] = (self._transport.call("POST", "/api/recipes/preview", json=body))["data"]
        return found

    def suggest(
        self,
        left: Mapping[str, Any] | None = None,
        right: Mapping[str, Any] | None = None,
        *,
        recipe_id: str | None = None,
    ) -> dict[str, Any]:
        """Rules that the first rows of two sides speak for, and why; with a recipe also its pairs made by hand."""
        given = {"left": left and dict(left), "right": right and dict(right), "recipe_id": recipe_id}
        body = {name: value for name, value in given.items() if value is not None}
        found: dict[str, Any] = (self._transport.call("POST", "/api/recipes/suggest", json=body))["data"]
        return found

    def schedule(self, recipe_id: str, cron: str, **options: Any) -> dict[str, Any]:
        path, body = {"recipe_id": recipe_id}, {"cron": cron} | options
        answer = self._transport.call("PUT", "/api/recipes/{recipe_id}/schedule", path=path, json=body)
        made: dict[str, Any] = answer["data"]
        return made

    def decide(
        self, recipe_id: str, kind: str, left_key: Sequence[str], right_key: Sequence[str], comment: str = ""
    ) -> int:
        """`match` or `unmatch` two records by hand, from the next run on."""
        body = {"kind": kind, "left_key": list(left_key), "right_key": list(right_key), "comment": comment}
        path = {"recipe_id": recipe_id}
        answer = self._transport.call("POST", "/api/recipes/{recipe_id}/decisions", path=path, json=body)
        decision_id: int = answer["data"]["decision_id"]
        return decision_id

    def decisions(self, recipe_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._recipe("GET", "/api/recipes/{recipe_id}/decisions", recipe_id)
        return found

    def take_back(self, recipe_id: str, decision_id: int) -> None:
        path = {"recipe_id": recipe_id, "decision_id": decision_id}
        self._transport.call("DELETE", "/api/recipes/{recipe_id}/decisions/{decision_id}", path=path)

    def note(self, recipe_id: str, side: str, key: Sequence[str], **words: str) -> None:
        """Label, comment or assign a record; what is left out stays."""
        body = {"side": side, "key": list(key)} | words
        self._transport.call("PUT", "/api/recipes/{recipe_id}/items", path={"recipe_id": recipe_id}, json=body)

    def notes(self, recipe_id: str, **filters: Any) -> list[dict[str, Any]]:
        path = {"recipe_id": recipe_id}
        answer = self._transport.call("GET", "/api/recipes/{recipe_id}/items", path=path, query=filters)
        found: list[dict[str, Any]] = answer["data"]
        return found

    def delete(self, recipe_id: str) -> None:
        self._recipe("DELETE", "/api/recipes/{recipe_id}", recipe_id)

    def upload(self, file: str | Path) -> str:
        """A CSV, Parquet or Excel file of yours as a source; returns the upload's id."""
        path = Path(file)
        content = path.read_bytes()
        answer = self._transport.sent("POST", "/api/uploads", content, query={"name": path.name})
        upload_id: str = answer["data"]["upload_id"]
        return upload_id

    def _recipe(self, method: str, template: str, recipe_id: str, **query: object) -> Any:
        answer = self._transport.call(method, template, path={"recipe_id": recipe_id}, query=query)
        return answer["data"]
