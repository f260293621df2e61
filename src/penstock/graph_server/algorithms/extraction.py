"""Exports parts of the graph to files that child processes map, once, and caches them."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import TYPE_CHECKING

from penstock.graphdb.algorithms import result_transfer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from penstock.graph_server.served_graph import Graph
    from penstock.graphdb.algorithms.selection import Selection

KEPT = 8
"""More than can run at once, so that none in use is the oldest."""


class Extraction:
    def __init__(self, graph: Callable[[], Graph], cache: Path) -> None:
        self._graph = graph
        self._cache = cache
        self._under_way: dict[str, asyncio.Lock] = {}

    async def folder(self, selection: Selection) -> Path:
        """Two that want the same part wait for one extraction; where it was cancelled, the next
        begins anew."""
        folder = self._cache / selection.fingerprint()
        async with self._under_way.setdefault(folder.name, asyncio.Lock()):
            if folder.exists():
                os.utime(folder)
            else:
                await self._fill(folder, selection)
        return folder

    async def _fill(self, folder: Path, selection: Selection) -> None:
        graph = self._graph()
        with result_transfer.whole(folder) as begun:
            for piece in result_transfer.node_pieces(graph.schema, selection):
                await graph.engine.node_file(piece.label, piece.properties, begun / piece.name)
            for edges in result_transfer.edge_pieces(graph.schema, selection):
                await graph.engine.edge_file(edges.table, edges.properties, begun / edges.name)
        await asyncio.to_thread(_forget_oldest, folder.parent)


def _forget_oldest(folder: Path) -> None:
    """A child that still reads one has it mapped: the files go when it ends."""
    full = [path for path in folder.iterdir() if path.suffix != ".part"]
    by_age = sorted(full, key=lambda path: path.stat().st_mtime)
    for old in by_age[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
