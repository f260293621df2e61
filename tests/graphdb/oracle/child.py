"""One engine in a process of its own, asked over its standard input and output: `python -m …
BACKEND`.

Requests and replies are pickled. A query goes the way that a client's goes: through the guard, the
engine's contract, and the shaping of values that comes before JSON.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import TYPE_CHECKING, Any

from penstock.graph_server.queries.results import Own, values
from penstock.graphdb.contract import EdgeTable, GraphSchema, NodeTable
from penstock.graphdb.registry import Opening, open_engine
from penstock.guard.cypher import check_cypher
from penstock.kit.errors import PenstockError

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.graphdb.contract import GraphEngine

TIMEOUT = 20.0


class Child:
    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._engine: GraphEngine | None = None
        self._own: Own | None = None

    def load(
        self, folder: Path, url: str | None, schema: GraphSchema, files: dict[str, Path]
    ) -> None:
        if self._engine is not None:
            self._engine.close()
        folder.mkdir()
        opening = Opening(folder=folder, memory_bytes=128 * 2**20, threads=1, url=url)
        engine = self._engine = open_engine(self._backend, opening)
        engine.create(schema)
        for table in (*schema.nodes, *schema.edges):
            engine.load(table, [files[_name(table)]])
        self._own = Own.of(schema, engine.written)

    def ask(self, text: str, parameters: dict[str, Any]) -> tuple[list[str], list[tuple[Any, ...]]]:
        assert self._engine is not None
        assert self._own is not None
        checked = check_cypher(text)
        result = self._engine.query(checked.text, parameters, timeout=TIMEOUT)
        try:
            rows: list[tuple[Any, ...]] = []
            for batch in result.batches(1000):
                rows += zip(*(values(column, self._own) for column in batch.columns), strict=True)
            return list(result.types), rows
        finally:
            result.close()


def _name(table: NodeTable | EdgeTable) -> str:
    if isinstance(table, NodeTable):
        return table.label
    return f"{table.type}:{table.from_node}:{table.to_node}"


def main() -> None:
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    child = Child(sys.argv[1])
    while True:
        try:
            method, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            os._exit(0)
        try:
            reply: object = ("ok", getattr(child, method)(*arguments))
        except PenstockError as e:
            reply = ("refused", f"{e.code}: {e.message}")
        except Exception as e:
            reply = ("broken", f"{type(e).__name__}: {e}")
        pickle.dump(reply, replies)
        replies.flush()


if __name__ == "__main__":
    main()
