"""The match job: files in, evidence out, the manifest last.

Evidence files are named by their bytes, so whichever attempt writes them writes the same objects; a
manifest that is there already with the same digest is ours.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import orjson

from penstock.engines.contract import EngineLimits
from penstock.engines.spill_room import writing
from penstock.jobs.handler import Answer, Result
from penstock.kit.errors import Conflict
from penstock.kit.scratch import Scratch
from penstock.reconcile.errors import ThresholdPassed
from penstock.reconcile.evidence import manifest as manifests
from penstock.reconcile.matching.decided import Decided
from penstock.reconcile.matching.execution import Execution, check_thresholds
from penstock.reconcile.matching.matcher import MatchLimits
from penstock.reconcile.recipes import validation
from penstock.reconcile.runs.aging import OPEN
from penstock.reconcile.runs.payloads import MatchPayload, evidence_prefix, staging_prefix
from penstock.reconcile.staging.filter_sql import kept
from penstock.reconcile.staging.native_files import Taken, take
from penstock.reconcile.staging.query import bound
from penstock.sources.credentials import SourceCredentials
from penstock.storage.errors import ObjectDamaged, ObjectExists, ObjectMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.engines.contract import Engine
    from penstock.jobs.handler import Job, JobContext
    from penstock.reconcile.control_plane import ReconcileControlPlane
    from penstock.reconcile.evidence.parquet_file import EvidenceFile
    from penstock.reconcile.matching.execution import Executed
    from penstock.reconcile.recipes.model import Recipe, Side, SideName
    from penstock.storage.contract import Store
    from penstock.storage.provider import ObjectStoreProvider

_STEPS = {"reading": 5.0, "matching": 20.0, "evidence": 60.0, "storing": 90.0}
SIDES: tuple[SideName, SideName] = ("left", "right")
_CHUNK = 1024 * 1024
_STAGED = "Run the recipe again."
_UPLOAD = "Upload the file again, and run the recipe with that upload."
_OPEN_ITEMS = (
    "These are the open items of the run before. Restore them from a backup of the storage, or save"
    " the recipe under another recipe_id: its items begin anew."
)


class Matcher:
    """The handler of `match`."""

    def __init__(
        self,
        planes: Callable[[], ReconcileControlPlane],
        depot: ObjectStoreProvider,
        *,
        limits: EngineLimits | None = None,
        match_limits: MatchLimits | None = None,
    ) -> None:
        self._planes = planes
        self._depot = depot
        self._limits = limits or EngineLimits()
        self._match_limits = match_limits or MatchLimits()

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        order = MatchPayload.read(job.payload)
        recipe = validation.read(order.recipe)
        store = self._depot.open()
        folder = Scratch.create(f"run-{order.run_id}")
        scratch = folder.path
        try:
            _tell(ctx, "reading")
            taken = {
                side: await self._taken(store, order, recipe, side, scratch, ctx) for side in SIDES
            }
            files = {side: each.files for side, each in taken.items()}
            execution = self._execution(ctx, recipe, files, scratch)
            if recipe.recipe_id is not None:
                execution.run_id = order.run_id
                items = [(key, _digest_in(key)) for key in order.before]
                execution.before = [
                    await _local(store, key, sha256, scratch, _OPEN_ITEMS) for key, sha256 in items
                ]
                execution.decided = Decided(**order.decided)
            executed = await self._run(ctx, execution)
            for each in taken.values():
                await asyncio.to_thread(each.check)
            _tell(ctx, "storing")
            inputs: dict[str, Any] = {side: each.told for side, each in taken.items()}
            return Result(await _publish(store, order, recipe, executed, inputs))
        finally:
            await asyncio.to_thread(folder.remove)

    def _execution(
        self, ctx: JobContext, recipe: Recipe, files: Mapping[Any, Sequence[Path]], scratch: Path
    ) -> Execution:
        return Execution(
            recipe=recipe,
            files=files,
            scratch=scratch / "work",
            limits=self._limits,
            match_limits=self._match_limits,
            watch=ctx.check,
            told=lambda stage: _tell(ctx, stage),
        )

    async def _run(self, ctx: JobContext, execution: Execution) -> Executed:
        engines: list[Engine] = []
        execution.began = engines.append
        try:
            return await ctx.in_thread(execution.run)
        except asyncio.CancelledError:
            for engine in engines:
                engine.cancel()
            raise

    async def _taken(
        self,
        store: Store,
        order: MatchPayload,
        recipe: Recipe,
        side: SideName,
        scratch: Path,
        ctx: JobContext,
    ) -> Taken:
        """One side's files, with the filters of the recipe applied; a source that was staged has
        applied them."""
        given = order.inputs[side]
        wanted = bound(recipe, getattr(recipe.sources, side), order.parameters)
        if given.get("native"):
            found = await self._native(given, wanted, side, scratch, ctx)
        else:
            files = [(file["key"], file["sha256"]) for file in given["files"]]
            hint = _UPLOAD if "upload" in given else _STAGED
            paths = [await _local(store, key, sha256, scratch, hint) for key, sha256 in files]
            found = Taken(files=paths, told=_input(given), filtered="data_source_id" in given)
        if found.filtered or not wanted.filters:
            return found
        left_over = await asyncio.to_thread(kept, found.files, wanted, scratch / f"filtered-{side}")
        return replace(found, files=[left_over])

    async def _native(
        self, given: Mapping[str, Any], wanted: Side, side: SideName, scratch: Path, ctx: JobContext
    ) -> Taken:
        async with self._planes() as plane:
            opening = SourceCredentials.read(await plane.source(ctx.fence, side))
        async with opening.opened() as source:
            found = await take(source, wanted, scratch / f"native-{side}.parquet")
        return replace(found, told={"data_source_id": given["data_source_id"], **found.told})


async def _local(store: Store, key: str, sha256: str, scratch: Path, hint: str) -> Path:
    """Where a file can be read: in place when the storage is a folder, else a copy. What is
    there must be what was written: `sha256` is its digest, or the beginning of it; `hint` says
    what to do where it is not."""
    parts = urlsplit(store.url)
    try:
        if parts.scheme == "file":
            path = Path(unquote(parts.path)) / key
            digest = await asyncio.to_thread(_digest, path)
        else:
            path = scratch / key.replace("/", "__")
            digest = await _copied(store, key, path)
    except (FileNotFoundError, ObjectMissing):
        raise ObjectMissing(f"{key} is not in the storage any more.", hint=hint, key=key) from None
    if not digest.startswith(sha256):
        raise ObjectDamaged(f"{key} is not what was written.", hint=hint, key=key)
    return path


async def _copied(store: Store, key: str, target: Path) -> str:
    digest = hashlib.sha256()
    with writing(target.parent), target.open("wb") as file:
        async for data in store.stream(key):
            digest.update(data)
            await asyncio.to_thread(file.write, data)
    return digest.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_in(key: str) -> str:
    """The beginning of the digest that an evidence file has in its name."""
    return key.removesuffix(".parquet").rsplit("-", 1)[-1]


async def _publish(
    store: Store, order: MatchPayload, recipe: Recipe, executed: Executed, inputs: Mapping[str, Any]
) -> dict[str, Any]:
    prefix = evidence_prefix(order.run_id)
    for file in [*executed.evidence.files, *executed.aged]:
        await asyncio.to_thread(_store_file, store, prefix + file.name, file)
    document = manifests.manifest(
        executed,
        recipe,
        version=order.recipe_version,
        inputs=inputs,
        run={"run_id": order.run_id, "parameters": dict(order.parameters)},
    )
    document, sha256 = await _write_last(store, prefix + manifests.NAME, document)
    return {
        "prefix": prefix,
        "manifest_sha256": sha256,
        "evidence_sha256": document["evidence_sha256"],
        "engine": document["engine"],
        "totals": document["totals"],
        "rules": document["rules"],
        "timings": document["timings"],
        "open_items": [prefix + file["name"] for file in document["aged"] if file["table"] == OPEN],
        "threshold": _threshold(recipe, executed),
    }


def _store_file(store: Store, key: str, file: EvidenceFile) -> None:
    try:
        with file.path.open("rb") as source, store.writer(key) as writer:
            while data := source.read(_CHUNK):
                writer.write(data)
    except ObjectExists:
        return  # its name is its digest: the same bytes are there


async def _write_last(
    store: Store,
    key: str,
    document: dict[str, Any],
) -> tuple[dict[str, Any], str]:
    """The manifest that is there in the end, and the digest of its bytes."""
    data = manifests.dump(document)
    try:
        await store.create(key, data)
    except ObjectExists:
        data = await store.get(key)
        there: dict[str, Any] = orjson.loads(data)
        if there["evidence_sha256"] != document["evidence_sha256"]:
            raise Conflict(
                "Another attempt of this run wrote other evidence.", hint="Run it again."
            ) from None
        document = there
    return document, manifests.digest(data)


def _input(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the manifest says of a side: its rows and digests, not where they lay for a while."""
    kept = {name: given[name] for name in ("upload", "data_source_id", "rows") if name in given}
    kept |= {
        name: value
        for name, value in given.get("document", {}).items()
        if name in ("table", "query")
    }
    return kept | {"sha256": [file["sha256"] for file in given["files"]]}


def _threshold(recipe: Recipe, executed: Executed) -> dict[str, Any] | None:
    try:
        check_thresholds(recipe, executed.evidence)
    except ThresholdPassed as e:
        return {"code": e.code, "message": e.message}
    return None


def _tell(ctx: JobContext, stage: str) -> None:
    ctx.progress(percent=_STEPS.get(stage, 0.0), stage=stage)


class RunCleaner:
    """The handler of `run_clean`: what was staged goes when the run is over."""

    def __init__(self, depot: ObjectStoreProvider) -> None:
        self._depot = depot

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        store = self._depot.open()
        keys = [info.key async for info in store.list(staging_prefix(job.payload["run_id"]))]
        if keys:
            await store.delete(keys)
        ctx.log.info("staging_removed", run_id=job.payload["run_id"], files=len(keys))
        return Result({"files": len(keys)})
