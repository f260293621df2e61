"""Loads a snapshot into a graph: mapping, manifest, files, tables, rows, and the check that
nothing is missing.

Each phase has its own error code. What the manifest promises is what the graph must hold: a count
that differs fails the start, for half a graph looks just like a whole one.
"""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from penstock.graph_server.control_plane.progress import Progress, Step
from penstock.graph_server.loading import files, plan
from penstock.graph_server.served_graph import Graph
from penstock.graphdb.contract import EdgeTable
from penstock.graphdb.errors import GraphFailed, LoadRefused
from penstock.kit import logging
from penstock.kit.errors import InvalidInput, PenstockError
from penstock.storage.manifest import read_manifest
from penstock.storage.object_store import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from penstock.graph_server.control_plane.client import Assignment, InstanceControlPlane
    from penstock.graph_server.engine.engine import Engine
    from penstock.graph_server.loading.plan import Plan, Source
    from penstock.graph_server.served_graph import Served
    from penstock.graph_server.settings import Start
    from penstock.storage.contract import Store

log = logging.get(__name__)


class StartFailed(Exception):
    """Why a server cannot serve, in the words that the control plane keeps."""

    def __init__(self, code: str, phase: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.phase = phase
        self.message = message


class Loading:
    def __init__(self, start: Start, served: Served, plane: InstanceControlPlane) -> None:
        self._start = start
        self._served = served
        self._plane = plane
        self._settings = start.instance
        self.progress = Progress(plane)

    async def run(self) -> Graph:
        async with self._phase("MAPPING_FETCH_ERROR"):
            assignment = self._served.assignment = await self._plane.assignment()
        async with self._phase("DATA_LOAD_ERROR"):
            await self.progress.enter("downloading")
            planned, brought = await self._bring(assignment)
        engine, folder = self._served.engine, self._folder("engine")
        async with self._phase("DATABASE_ERROR"):
            await self.progress.enter("loading_schema")
            await engine.open(folder, sorted({file.parent for file in brought.values()}))
        async with self._phase("SCHEMA_CREATE_ERROR"):
            await self._create(engine, planned)
        async with self._phase("DATA_LOAD_ERROR"):
            await self.progress.enter("loading_data")
            counts = await self._load(engine, planned, brought)
            await engine.seal(planned.schema)
        shutil.rmtree(self._settings.dir / "files", ignore_errors=True)
        await self.progress.enter("ready")
        return Graph(engine=engine, schema=planned.schema, counts=counts)

    async def _bring(self, assignment: Assignment) -> tuple[Plan, Mapping[str, Path]]:
        store = open_store(self._start.storage_url, options=self._start.storage)
        manifest = await read_manifest(
            store, _prefix(assignment.location, store, self._start.storage_url)
        )
        planned = plan.make(assignment.node_definitions, assignment.edge_definitions, manifest)
        download = Step(name="downloaded")
        self.progress.plan(
            [download, Step(name="schema_created"), *(_step(source) for source in planned.sources)]
        )
        await self.progress.begin(download)
        parts = [part for source in planned.sources for part in source.parts]
        brought = await files.bring(store, parts, self._folder("files"))
        await self.progress.end(download)
        return planned, brought

    async def _create(self, engine: Engine, planned: Plan) -> None:
        step = next(step for step in self.progress.steps if step.name == "schema_created")
        await self.progress.begin(step)
        await engine.create(planned.schema)
        await self.progress.end(step)

    async def _load(
        self, engine: Engine, planned: Plan, brought: Mapping[str, Path]
    ) -> dict[str, int]:
        steps = self.progress.steps[-len(planned.sources) :]
        expected: dict[str, int] = {}
        for source, step in zip(planned.sources, steps, strict=True):
            await self.progress.begin(step)
            expected[source.counted_as] = rows = await self._load_one(engine, source, brought)
            await self.progress.end(step, rows=rows)
        counts = await engine.counts()
        _compare(counts, expected)
        return counts

    async def _load_one(self, engine: Engine, source: Source, brought: Mapping[str, Path]) -> int:
        paths = [brought[part.path] for part in source.parts]
        dangling = self._settings.dangling_edges if isinstance(source.table, EdgeTable) else "fail"
        loaded = await engine.load(source.table, paths, dangling=dangling)
        log.info(
            "table_loaded",
            table=source.name,
            kind=source.kind,
            rows=loaded.rows,
            dropped=loaded.dropped,
        )
        if loaded.rows + loaded.dropped != source.rows:
            raise LoadRefused(
                (
                    f"{source.name}: {loaded.rows} rows were loaded, but the manifest has "
                    f"{source.rows}."
                ),
                loaded=loaded.rows,
                manifest=source.rows,
            )
        return loaded.rows

    def _folder(self, name: str) -> Path:
        """A fresh one: what an earlier start left is worth nothing."""
        folder = self._settings.dir / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    @asynccontextmanager
    async def _phase(self, code: str) -> AsyncIterator[None]:
        try:
            yield
        except PenstockError as e:
            error_code = e.code if isinstance(e, GraphFailed) else code
            raise StartFailed(self._named(error_code), self.progress.phase, _message(e)) from e
        except Exception as e:
            raise StartFailed(
                self._named(code), self.progress.phase, f"{type(e).__name__}: {e}"
            ) from e

    def _named(self, code: str) -> str:
        own = self._settings.backend == "falkordb" and code in (
            "SCHEMA_CREATE_ERROR",
            "DATABASE_ERROR",
        )
        return f"FALKORDB_{code}" if own else code


def _step(source: Source) -> Step:
    return Step(name=source.name, type=source.kind)


def _message(error: PenstockError) -> str:
    return f"{error.message} {error.hint}" if error.hint else error.message


def _compare(counts: Mapping[str, int], expected: Mapping[str, int]) -> None:
    for name, rows in expected.items():
        if counts.get(name) != rows:
            raise LoadRefused(
                f"{name}: the graph holds {counts.get(name)}, but {rows} were loaded.", table=name
            )


def _prefix(location: str, *roots: Store | str) -> str:
    """The snapshot's place below the storage's root, from a URL or as it is."""
    urls = [root if isinstance(root, str) else root.url for root in roots]
    for url in urls:
        if location.startswith(f"{url.rstrip('/')}/"):
            location = location.removeprefix(f"{url.rstrip('/')}/")
            break
    else:
        if "://" in location:
            raise InvalidInput(
                f"The snapshot is in {location}, which is not in this server's storage."
            )
    return location if location.endswith("/") else f"{location}/"
