"""Reconciliation: recipes, decisions, notes and uploads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from penstock.client._async.listing import listed
from penstock.client._async.resource import AsyncResource
from penstock.client._async.runs import AsyncRun
from penstock.client._async.sources import AsyncRecordSources
from penstock.client.bodies import given

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from typing import Unpack

    from penstock.client import shapes
    from penstock.client._async.transport import AsyncTransport
    from penstock.client.words import DecisionKind, SideName


class AsyncReconcile(AsyncResource):
    def __init__(self, transport: AsyncTransport) -> None:
        super().__init__(transport)
        self.sources: AsyncRecordSources = AsyncRecordSources(transport)

    async def run(
        self,
        recipe: str | Mapping[str, object],
        *,
        version: int | None = None,
        sources: Mapping[str, object] | None = None,
        staging: Mapping[str, int] | None = None,
        callback_url: str | None = None,
        **parameters: object,
    ) -> AsyncRun:
        """A saved recipe by its id, or one as it is written; what is no word of the request is a
        run parameter."""
        body = _named(recipe) | given(
            version=version,
            sources=sources,
            staging=staging,
            callback_url=callback_url,
            parameters=parameters or None,
        )
        return AsyncRun(self._transport, await self._call("POST", "/api/runs", json=body))

    async def get(self, run_id: int) -> AsyncRun:
        answer = await self._call("GET", "/api/runs/{run_id}", run_id=run_id)
        return AsyncRun(self._transport, answer)

    async def runs(self, **filters: Unpack[shapes.RunsFilters]) -> AsyncIterator[AsyncRun]:
        async for item in listed(self._transport, "/api/runs", **filters):
            yield AsyncRun(self._transport, item)

    async def save(
        self,
        recipe: Mapping[str, object],
        recipe_id: str | None = None,
        *,
        expected: int | None = None,
    ) -> shapes.Recipe:
        """Save a recipe or its next version; `expected` is the version it must follow."""
        saved: shapes.Recipe
        if recipe_id is None:
            saved = await self._call("POST", "/api/recipes", json=_named(recipe))
        else:
            saved = await self._call(
                "PUT",
                "/api/recipes/{recipe_id}",
                recipe_id=recipe_id,
                query={"expected": expected},
                json=_named(recipe),
            )
        return saved

    async def recipe(self, recipe_id: str, version: int | None = None) -> shapes.Recipe:
        document: shapes.Recipe = await self._call(
            "GET", "/api/recipes/{recipe_id}", recipe_id=recipe_id, query={"version": version}
        )
        return document

    async def recipes(
        self, **filters: Unpack[shapes.RecipesFilters]
    ) -> AsyncIterator[shapes.Recipe]:
        async for item in listed(self._transport, "/api/recipes", **filters):
            yield item

    async def versions(self, recipe_id: str) -> list[shapes.RecipeVersion]:
        rows: list[shapes.RecipeVersion] = await self._call(
            "GET", "/api/recipes/{recipe_id}/versions", recipe_id=recipe_id
        )
        return rows

    async def explain(
        self, recipe: str | Mapping[str, object], *, version: int | None = None
    ) -> list[shapes.RecipeStep]:
        """The SQL that a recipe becomes."""
        steps: list[shapes.RecipeStep]
        if isinstance(recipe, str):
            template = "/api/recipes/{recipe_id}/explain"
            query = {"version": version}
            steps = await self._call("GET", template, recipe_id=recipe, query=query)
        else:
            steps = await self._call("POST", "/api/recipes/explain", json=_named(recipe))
        return steps

    async def validate(self, recipe: Mapping[str, object]) -> shapes.RecipeValidation:
        """Every fault at once, each with a suggestion."""
        result: shapes.RecipeValidation = await self._call(
            "POST", "/api/recipes/validate", json=_named(recipe)
        )
        return result

    async def preview(
        self, recipe: str | Mapping[str, object], *, rows: int = 1000, **parameters: object
    ) -> shapes.Previewed:
        """Match the first rows of each side; nothing is saved."""
        body = _named(recipe) | {"rows": rows, "parameters": parameters}
        result: shapes.Previewed = await self._call("POST", "/api/recipes/preview", json=body)
        return result

    async def suggest(
        self,
        left: Mapping[str, object] | None = None,
        right: Mapping[str, object] | None = None,
        *,
        recipe_id: str | None = None,
    ) -> shapes.Suggested:
        """Rules that the first rows of two sides speak for, and why; with a recipe also its pairs
        made by hand."""
        body = given(left=left and dict(left), right=right and dict(right), recipe_id=recipe_id)
        suggestions: shapes.Suggested = await self._call("POST", "/api/recipes/suggest", json=body)
        return suggestions

    async def schedule(
        self,
        recipe_id: str,
        cron: str,
        *,
        zone: str = "UTC",
        enabled: bool = True,
        parameters: Mapping[str, object] | None = None,
    ) -> shapes.Scheduled:
        """Run it by the clock, with those parameters."""
        body = {
            "cron": cron,
            "zone": zone,
            "enabled": enabled,
            "parameters": dict(parameters or {}),
        }
        scheduled: shapes.Scheduled = await self._call(
            "PUT", "/api/recipes/{recipe_id}/schedule", recipe_id=recipe_id, json=body
        )
        return scheduled

    async def decide(
        self,
        recipe_id: str,
        kind: DecisionKind,
        left_key: Sequence[str],
        right_key: Sequence[str],
        comment: str = "",
    ) -> int:
        """`match` or `unmatch` two records by hand, from the next run on."""
        body: shapes.NewDecision = {
            "kind": kind,
            "left_key": list(left_key),
            "right_key": list(right_key),
            "comment": comment,
        }
        decision: shapes.Made = await self._call(
            "POST", "/api/recipes/{recipe_id}/decisions", recipe_id=recipe_id, json=body
        )
        return decision["decision_id"]

    async def decisions(self, recipe_id: str) -> list[shapes.Decision]:
        rows: list[shapes.Decision] = await self._call(
            "GET", "/api/recipes/{recipe_id}/decisions", recipe_id=recipe_id
        )
        return rows

    async def take_back(self, recipe_id: str, decision_id: int) -> None:
        template = "/api/recipes/{recipe_id}/decisions/{decision_id}"
        await self._call("DELETE", template, recipe_id=recipe_id, decision_id=decision_id)

    async def note(
        self,
        recipe_id: str,
        side: SideName,
        key: Sequence[str],
        *,
        label: str | None = None,
        comment: str | None = None,
        assignee: str | None = None,
    ) -> shapes.Noted:
        """Label, comment or assign a record; what is left out stays."""
        body = given(side=side, key=list(key), label=label, comment=comment, assignee=assignee)
        noted: shapes.Noted = await self._call(
            "PUT", "/api/recipes/{recipe_id}/items", recipe_id=recipe_id, json=body
        )
        return noted

    async def notes(
        self, recipe_id: str, **filters: Unpack[shapes.RecipesItemsFilters]
    ) -> AsyncIterator[shapes.Note]:
        path = {"recipe_id": recipe_id}
        async for item in listed(
            self._transport, "/api/recipes/{recipe_id}/items", path, **filters
        ):
            yield item

    async def delete(self, recipe_id: str) -> shapes.RecipeDropped:
        gone: shapes.RecipeDropped = await self._call(
            "DELETE", "/api/recipes/{recipe_id}", recipe_id=recipe_id
        )
        return gone

    async def upload(
        self, file: str | Path, *, encoding: str | None = None, delimiter: str | None = None
    ) -> str:
        """A CSV, Parquet or Excel file of yours as a source; returns the upload's id."""
        path = Path(file)
        content = await anyio.to_thread.run_sync(path.read_bytes)
        query = {"name": path.name, "encoding": encoding, "delimiter": delimiter}
        answer = await self._transport.sent("POST", "/api/uploads", content, query=query)
        upload: shapes.Upload = answer["data"]
        return upload["upload_id"]

    async def uploaded(self, upload_id: str) -> shapes.Upload:
        """What an upload holds."""
        upload: shapes.Upload = await self._call(
            "GET", "/api/uploads/{upload_id}", upload_id=upload_id
        )
        return upload

    async def uploads(self) -> AsyncIterator[shapes.Upload]:
        """Your uploads, newest first; for admins everybody's."""
        async for item in listed(self._transport, "/api/uploads"):
            yield item

    async def upload_usage(self) -> shapes.UploadUsage:
        """Size and quota of your uploads."""
        usage: shapes.UploadUsage = await self._call("GET", "/api/uploads/usage")
        return usage

    async def delete_upload(self, upload_id: str) -> shapes.UploadDropped:
        """At once, with its file; not while a run that is not over reads it."""
        dropped: shapes.UploadDropped = await self._call(
            "DELETE", "/api/uploads/{upload_id}", upload_id=upload_id
        )
        return dropped


def _named(recipe: str | Mapping[str, object]) -> dict[str, object]:
    """A saved recipe by its id, or one as it is written."""
    return {"recipe_id": recipe} if isinstance(recipe, str) else {"recipe": dict(recipe)}
