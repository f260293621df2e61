"""Handlers of the `match` and `run_clean` jobs: read the files of both sides, match them, store the
evidence, and write the manifest last.

Evidence files are named by their digest, so every attempt writes the same objects; an existing
manifest with the same digest is accepted.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import orjson

from penstock.engines.contract import EngineLimits
from penstock.engines.spill import writing
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
from penstock.reconcile.staging.filter_sql import apply_filters
from penstock.reconcile.staging.native_files import SideFiles, take
from penstock.reconcile.staging.query import bound
from penstock.sources.credentials import SourceCredentials
from penstock.storage.errors import ObjectDamaged, ObjectExists, ObjectMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.engines.contract import Engine
    from penstock.jobs.handler import Job, JobContext
    from penstock.kit.json_value import JsonObject, JsonValue
    from penstock.reconcile.control_plane import ReconcileControlPlane
    from penstock.reconcile.evidence.document import Manifest, RunResult, ThresholdEntry
    from penstock.reconcile.evidence.parquet_file import EvidenceFile
    from penstock.reconcile.matching.execution import Executed
    from penstock.reconcile.recipes.model import Recipe, Side, SideName
    from penstock.reconcile.runs.side_input import SideInput
    from penstock.storage.contract import Store
    from penstock.storage.provider import ObjectStoreProvider

_STEPS = {"reading": 5.0, "matching": 20.0, "evidence": 60.0, "storing": 90.0}
SIDES: tuple[SideName, SideName] = ("left", "right")
_CHUNK = 1024 * 1024
_STAGED = "Run the recipe again."
_UPLOAD = "Upload the file again, and run the recipe with that upload."
_OPEN_ITEMS = (
    "These are the open items of the previous run. Restore them from a backup of the storage, or"
    " save the recipe under another recipe_id: its open items start over."
)


class Matcher:
    """Handler of `match`."""

    def __init__(
        self,
        connect: Callable[[], ReconcileControlPlane],
        object_store: ObjectStoreProvider,
        *,
        limits: EngineLimits | None = None,
        match_limits: MatchLimits | None = None,
    ) -> None:
        self._connect = connect
        self._object_store = object_store
        self._limits = limits or EngineLimits()
        self._match_limits = match_limits or MatchLimits()

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        payload = MatchPayload.read(job.payload)
        recipe = validation.read(payload.recipe)
        store = self._object_store.open()
        folder = Scratch.create(f"run-{payload.run_id}")
        scratch = folder.path
        try:
            _report(ctx, "reading")
            taken = {
                side: await self._side_files(store, payload, recipe, side, scratch, ctx)
                for side in SIDES
            }
            files = {side: side_input.files for side, side_input in taken.items()}
            execution = self._execution(ctx, recipe, files, scratch)
            if recipe.recipe_id is not None:
                execution.run_id = payload.run_id
                items = [(key, _digest_in(key)) for key in payload.before]
                execution.before = [
                    await _local(store, key, sha256, scratch, _OPEN_ITEMS) for key, sha256 in items
                ]
                execution.decided = Decided(**payload.decided)
            executed = await self._run(ctx, execution)
            for side_input in taken.values():
                await asyncio.to_thread(side_input.check)
            _report(ctx, "storing")
            inputs = {side: side_input.manifest_entry for side, side_input in taken.items()}
            return Result(await _publish(store, payload, recipe, executed, inputs))
        finally:
            await asyncio.to_thread(folder.remove)

    def _execution(
        self,
        ctx: JobContext,
        recipe: Recipe,
        files: Mapping[SideName, Sequence[Path]],
        scratch: Path,
    ) -> Execution:
        return Execution(
            recipe=recipe,
            files=files,
            scratch=scratch / "work",
            limits=self._limits,
            match_limits=self._match_limits,
            watch=ctx.check,
            report_stage=lambda stage: _report(ctx, stage),
        )

    async def _run(self, ctx: JobContext, execution: Execution) -> Executed:
        engines: list[Engine] = []
        execution.on_engine = engines.append
        try:
            return await ctx.in_thread(execution.run)
        except asyncio.CancelledError:
            for engine in engines:
                engine.cancel()
            raise

    async def _side_files(
        self,
        store: Store,
        payload: MatchPayload,
        recipe: Recipe,
        side: SideName,
        scratch: Path,
        ctx: JobContext,
    ) -> SideFiles:
        """One side's files, with the filters of the recipe applied; staged sources are already
        filtered."""
        source = payload.inputs[side]
        bound_side = bound(recipe, getattr(recipe.sources, side), payload.parameters)
        if source.get("native"):
            taken = await self._native(source, bound_side, side, scratch, ctx)
        else:
            files = [(file["key"], file["sha256"]) for file in source["files"]]
            hint = _UPLOAD if "upload" in source else _STAGED
            paths = [await _local(store, key, sha256, scratch, hint) for key, sha256 in files]
            taken = SideFiles(
                files=paths, manifest_entry=_input(source), filtered="data_source_id" in source
            )
        if taken.filtered or not bound_side.filters:
            return taken
        left_over = await asyncio.to_thread(
            apply_filters, taken.files, bound_side, scratch / f"filtered-{side}"
        )
        return replace(taken, files=[left_over])

    async def _native(
        self,
        source_input: SideInput,
        bound_side: Side,
        side: SideName,
        scratch: Path,
        ctx: JobContext,
    ) -> SideFiles:
        async with self._connect() as control_plane:
            credentials = SourceCredentials.read(await control_plane.source(ctx.fence, side))
        async with credentials.opened() as source:
            taken = await take(source, bound_side, scratch / f"native-{side}.parquet")
        return replace(
            taken,
            manifest_entry={
                "data_source_id": source_input["data_source_id"],
                **taken.manifest_entry,
            },
        )


async def _local(store: Store, key: str, sha256: str, scratch: Path, hint: str) -> Path:
    """A local path of a stored file: in place if the storage is a folder, else a copy. Its digest
    must begin with `sha256`; `hint` says what to do if it does not."""
    parts = urlsplit(store.url)
    try:
        if parts.scheme == "file":
            path = Path(unquote(parts.path)) / key
            digest = await asyncio.to_thread(_digest, path)
        else:
            path = scratch / key.replace("/", "__")
            digest = await _copy(store, key, path)
    except (FileNotFoundError, ObjectMissing):
        raise ObjectMissing(
            f"{key} is missing from the object store.", hint=hint, key=key
        ) from None
    if not digest.startswith(sha256):
        raise ObjectDamaged(f"{key} is not what was written.", hint=hint, key=key)
    return path


async def _copy(store: Store, key: str, target: Path) -> str:
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
    """The digest prefix in the name of an evidence file."""
    return key.removesuffix(".parquet").rsplit("-", 1)[-1]


async def _publish(
    store: Store,
    payload: MatchPayload,
    recipe: Recipe,
    executed: Executed,
    inputs: Mapping[SideName, Mapping[str, JsonValue]],
) -> RunResult:
    prefix = evidence_prefix(payload.run_id)
    for file in [*executed.evidence.files, *executed.aged]:
        await asyncio.to_thread(_store_file, store, prefix + file.name, file)
    document = manifests.manifest(
        executed,
        recipe,
        version=payload.recipe_version,
        inputs=inputs,
        run={"run_id": payload.run_id, "parameters": dict(payload.parameters)},
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
    document: Manifest,
) -> tuple[Manifest, str]:
    """Write the manifest; returns the stored one, and the digest of its bytes."""
    data = manifests.dump(document)
    try:
        await store.create(key, data)
    except ObjectExists:
        data = await store.get(key)
        there: Manifest = orjson.loads(data)
        if there["evidence_sha256"] != document["evidence_sha256"]:
            raise Conflict(
                "Another attempt of this run wrote different evidence.", hint="Retry the run."
            ) from None
        document = there
    return document, manifests.digest(data)


def _input(source: SideInput) -> JsonObject:
    """A side's entry in the manifest: its rows and digests, without temporary storage keys."""
    entry: JsonObject = {"sha256": [file["sha256"] for file in source["files"]]}
    if "upload" in source:
        entry["upload"] = source["upload"]
    if "data_source_id" in source:
        entry["data_source_id"] = source["data_source_id"]
    if "rows" in source:
        entry["rows"] = source["rows"]
    document = source.get("document", {})
    return entry | {name: document[name] for name in ("table", "query") if name in document}


def _threshold(recipe: Recipe, executed: Executed) -> ThresholdEntry | None:
    try:
        check_thresholds(recipe, executed.evidence)
    except ThresholdPassed as e:
        return {"code": e.code, "message": e.message}
    return None


def _report(ctx: JobContext, stage: str) -> None:
    ctx.progress(percent=_STEPS.get(stage, 0.0), stage=stage)


class RunCleaner:
    """Handler of `run_clean`: deletes the staged files of a finished run."""

    def __init__(self, object_store: ObjectStoreProvider) -> None:
        self._object_store = object_store

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        store = self._object_store.open()
        keys = [info.key async for info in store.list(staging_prefix(job.payload["run_id"]))]
        if keys:
            await store.delete(keys)
        ctx.log.info("staging_removed", run_id=job.payload["run_id"], files=len(keys))
        return Result({"files": len(keys)})
