"""Use cases of runs: checks a recipe against its sources and the caller's rights, previews it,
suggests rules, and starts runs.

Called by the API in the control plane. It reads sources, and leaves writing to the repositories.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.kit.errors import InvalidInput, NotFound, PenstockError, PermissionDenied
from penstock.reconcile.match_sql.queries import checked
from penstock.reconcile.matching.column import columns
from penstock.reconcile.recipes import trial, validation
from penstock.reconcile.recipes.draft import SIDES, readable, whole
from penstock.reconcile.recipes.fault import Fault
from penstock.reconcile.recipes.filters import Filter
from penstock.reconcile.recipes.model import Recipe
from penstock.reconcile.recipes.preview import preview
from penstock.reconcile.recipes.suggestion import suggest
from penstock.reconcile.staging.query import bound
from penstock.reconcile.staging.reading import first_rows, source_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from penstock.kit.json_value import JsonValue
    from penstock.reconcile.matching.column import Column
    from penstock.reconcile.matching.decided import Decided, Key
    from penstock.reconcile.recipes.model import Side, SideName
    from penstock.reconcile.recipes.preview import Preview
    from penstock.reconcile.recipes.repository import Recipes
    from penstock.reconcile.recipes.suggestion import Row, Suggestion
    from penstock.reconcile.runs.model import Run
    from penstock.reconcile.runs.repository import Runs
    from penstock.reconcile.runs.side_input import SideInput
    from penstock.reconcile.uploads.service import Upload, Uploads
    from penstock.sources.repository import DataSource, DataSources

MOST_PAIRS = 1000
NATIVE = frozenset({"files"})
"""Source types that the match reads in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The user of a request, whose rights to sources apply.

    `recipe_id` is the saved recipe whose sides are used unchanged; if it is shared with the user,
    it lets them read its sources. `changed` are the sides that the request overrides.
    """

    username: str
    is_admin: bool | None = None
    """None: looked up in the user table."""
    recipe_id: str | None = None
    changed: frozenset[SideName] = frozenset()

    def lent(self, side: SideName) -> str | None:
        """The recipe that may lend this side's source."""
        return None if side in self.changed else self.recipe_id


class RunService:
    def __init__(
        self,
        runs: Runs,
        recipes: Recipes,
        uploads: Uploads,
        sources: DataSources,
        *,
        reach: Callable[[str], None],
    ) -> None:
        self.runs = runs
        self.recipes = recipes
        self.uploads = uploads
        self.sources = sources
        self._reach = reach

    async def faults(self, document: object, asker: Asker) -> list[Fault]:
        """Every fault of a recipe, even if its form is invalid elsewhere: its sources, columns and
        SQL."""
        read = validation.form(document)
        faults, draft = (
            ([], whole(read)) if isinstance(read, Recipe) else (read, readable(document))
        )
        schemas: dict[SideName, pa.Schema] = {}
        for name, side in draft.sides.items():
            try:
                schemas[name] = await self.schema(side, name, asker)
            except PenstockError as e:
                faults.append(
                    Fault(
                        path=f"sources.{name}",
                        message=e.message,
                        suggestion=e.hint or "Check the source.",
                    )
                )
        faults += validation.against(
            draft, {name: columns(schema) for name, schema in schemas.items()}
        )
        faults += await asyncio.to_thread(_of_sql, document)
        if (
            isinstance(read, Recipe)
            and len(schemas) == len(SIDES)
            and not any(f.severity == "error" for f in faults)
        ):
            async with self.sources.turns.slot(asker.username):
                faults += await asyncio.to_thread(trial.faults, read, schemas)
        return faults

    async def columns(self, side: Side, name: SideName, asker: Asker) -> Mapping[str, Column]:
        return columns(await self.schema(side, name, asker))

    async def schema(self, side: Side, name: SideName, asker: Asker) -> pa.Schema:
        if side.upload is not None:
            return await self.uploads.schema(await self._upload(side.upload, asker))
        source = await self.source(side.source or "", name, asker)
        return await self.sources.ask(
            source.data_source_id, lambda it: source_schema(it, side), by=asker.username
        )

    async def sample(self, side: Side, name: SideName, asker: Asker, rows: int) -> pa.Table:
        """The first rows of a side that pass its filters, in a turn that the caller has taken: as
        many samples are in memory at once as there are turns."""
        if side.upload is not None:
            return await self.uploads.sample(await self._upload(side.upload, asker), side, rows)
        source = await self.source(side.source or "", name, asker)
        return await self.sources.ask_in_turn(
            source.data_source_id, lambda it: first_rows(it, side, rows)
        )

    async def _confirmed(
        self, sides: tuple[Side, Side], keys: Sequence[tuple[Key, Key]], asker: Asker
    ) -> list[tuple[Row, Row]]:
        """The rows of confirmed pairs; for keys of several columns only those among the first rows
        of a side."""
        rows_by_key = []
        for place, (name, side) in enumerate(zip(SIDES, sides, strict=True)):
            keys_of_side = [pair[place] for pair in keys[-MOST_PAIRS:]]
            scope: tuple[Filter, ...] = ()
            if len(side.primary_key) == 1:
                values: list[JsonValue] = [key[0] for key in keys_of_side]
                scope = (Filter(column=side.primary_key[0], op="in", value=values),)
            try:
                rows = await self.sample(
                    side.model_copy(update={"filters": scope}), name, asker, 5 * MOST_PAIRS
                )
            except InvalidInput:  # a key that the column cannot have names no record
                rows = await self.sample(
                    side.model_copy(update={"filters": ()}), name, asker, 5 * MOST_PAIRS
                )
            rows_by_key.append(
                {
                    tuple(str(row[name]) for name in side.primary_key): row
                    for row in rows.to_pylist()
                }
            )
        left, right = rows_by_key
        return [
            (left[tuple(a)], right[tuple(b)])
            for a, b in keys
            if tuple(a) in left and tuple(b) in right
        ]

    async def preview(
        self,
        recipe: Recipe,
        asker: Asker,
        *,
        rows: int,
        parameters: Mapping[str, JsonValue],
        decided: Decided,
    ) -> Preview:
        """Match the first rows of both sides."""
        if recipe.match_sql is not None:
            await asyncio.to_thread(checked, recipe.match_sql)
        sides = {name: bound(recipe, getattr(recipe.sources, name), parameters) for name in SIDES}
        async with self.sources.turns.slot(asker.username):
            left, right = [
                await self.sample(side, name, asker, rows) for name, side in sides.items()
            ]
            return await preview(recipe, left, right, decided)

    async def suggest(
        self, sides: tuple[Side, Side], asker: Asker, *, rows: int, decided: Decided
    ) -> tuple[Suggestion, int]:
        """Rules for two sides, and on how many pairs that people made they rest."""
        async with self.sources.turns.slot(asker.username):
            left, right = [
                await self.sample(side, name, asker, rows)
                for name, side in zip(SIDES, sides, strict=True)
            ]
            pairs = await self._confirmed(sides, decided.match, asker) if decided.match else []
            return await asyncio.to_thread(suggest, left, right, pairs), len(pairs)

    async def start(
        self,
        recipe: Recipe,
        asker: Asker,
        *,
        recipe_id: str | None = None,
        version: int | None = None,
        parameters: Mapping[str, JsonValue] | None = None,
        callback_url: str | None = None,
        started_by: int | None = None,
    ) -> Run:
        """Enqueue a run; refuses errors that can be found without reading the sources."""
        values = dict(parameters or {})
        inputs: dict[str, SideInput] = {}
        for side in SIDES:
            inputs[side] = await self._input(recipe, side, values, asker)
        if recipe.match_sql is not None:
            await asyncio.to_thread(checked, recipe.match_sql)
        if callback_url is not None:
            await asyncio.to_thread(self._reach, callback_url)
        return await self.runs.add(
            owner=asker.username,
            recipe=recipe.document(),
            inputs=inputs,
            recipe_id=recipe_id,
            recipe_version=version,
            parameters=values,
            callback_url=callback_url,
            started_by=started_by,
        )

    async def _input(
        self, recipe: Recipe, name: SideName, values: Mapping[str, JsonValue], asker: Asker
    ) -> SideInput:
        bound_side = bound(recipe, getattr(recipe.sources, name), values)
        if bound_side.upload is not None:
            upload = await self._upload(bound_side.upload, asker)
            await self.uploads.used(upload.upload_id)
            return upload.input()
        source = await self.source(bound_side.source or "", name, asker)
        source_input: SideInput = {
            "data_source_id": source.data_source_id,
            "document": bound_side.model_dump(mode="json", exclude_unset=True),
        }
        if asker.lent(name) is not None:
            source_input["lent"] = True
        if source.type in NATIVE:
            source_input["native"] = True
        elif staging_options := recipe.staging.model_dump(exclude_unset=True):
            source_input["staging"] = staging_options
        return source_input

    async def source(self, alias: str, side: SideName, asker: Asker) -> DataSource:
        """The source, if the user may read it, by their own right or by that of the recipe they
        run."""
        try:
            source = await self.sources.find(alias)
        except NotFound:
            raise _no_source(alias) from None
        data_source_id, lender = source.data_source_id, asker.lent(side)
        if await self.sources.may_use(data_source_id, asker.username, is_admin=asker.is_admin):
            return source
        if lender is not None and await self.recipes.lends(lender, data_source_id, asker.username):
            return source
        raise _no_source(alias)

    async def check_side(self, side: Side, name: SideName, asker: Asker) -> None:
        """Refuse a side that the user may not read."""
        if side.upload is not None:
            await self._upload(side.upload, asker)
        else:
            await self.source(side.source or "", name, asker)

    async def check_reads(
        self,
        run: Run,
        username: str,
        *,
        is_admin: bool | None = None,
        data_source_id: int | None = None,
    ) -> None:
        """Refuse a user who may not, or may no longer, read the sources of a run, or one of
        them.
        """
        for source in run.inputs.values():
            read = source.get("data_source_id")
            if read is None or data_source_id not in (None, read):
                continue
            if await self.sources.may_use(read, username, is_admin=is_admin):
                continue
            lends = run.recipe_id if source.get("lent") else None
            if lends is None or not await self.recipes.lends(lends, read, username):
                raise PermissionDenied(
                    f"Run {run.run_id} reads from data source {read}, which {username} may not"
                    f" use.",
                    hint="Ask its owner or an admin to share the source with you.",
                )

    async def _upload(self, upload_id: str, asker: Asker) -> Upload:
        try:
            upload = await self.uploads.get(upload_id)
        except NotFound:
            raise _no_upload(upload_id) from None
        if upload.owner_username != asker.username and not asker.is_admin:
            raise _no_upload(upload_id)
        return upload


def _no_source(name: str) -> InvalidInput:
    return InvalidInput(
        f"There is no source {name[:100]!r} that you may use.", hint="GET /api/sources lists them."
    )


def _no_upload(upload_id: str) -> InvalidInput:
    return InvalidInput(
        f"There is no upload {upload_id} that you may use.", hint="POST /api/uploads makes one."
    )


def _of_sql(document: object) -> list[Fault]:
    sql = document.get("match_sql") if isinstance(document, dict) else None
    try:
        if isinstance(sql, str):
            checked(sql)
    except InvalidInput as e:
        return [
            Fault(path="match_sql", message=e.message, suggestion=e.hint or "Write one SELECT.")
        ]
    return []
