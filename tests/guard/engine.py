"""A graph engine in its own process, for untested statements that may corrupt its memory.

`python -m tests.guard.engine FOLDER` answers pickled requests on its standard input;
`ForeignEngine` sends them.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.graphdb.contract import EdgeTable, GraphSchema, NodeTable, Property
from penstock.graphdb.registry import Opening, open_engine
from penstock.kit.errors import PenstockError

if TYPE_CHECKING:
    from penstock.graphdb.contract import GraphEngine

REPOSITORY = Path(__file__).parents[2]
PERSON = NodeTable(
    label="Person",
    key=Property(name="id", type="INT64"),
    properties=(
        Property(name="name", type="STRING"),
        Property(name="set", type="BOOL"),
        Property(name="score", type="DOUBLE"),
        Property(name="born", type="DATE"),
        Property(name="tags", type="LIST", arrow=pa.list_(pa.string())),
        Property(name="facts", type="MAP", arrow=pa.map_(pa.string(), pa.int64())),
        Property(name="home", type="STRUCT", arrow=pa.struct([("city", pa.string())])),
        Property(name="uid", type="UUID"),
    ),
)
CITY = NodeTable(label="City", key=Property(name="name", type="STRING"))
KNOWS = EdgeTable(
    type="KNOWS",
    from_node="Person",
    to_node="Person",
    properties=(Property(name="weight", type="DOUBLE"),),
)
LIVES = EdgeTable(type="LIVES_IN", from_node="Person", to_node="City")


class ForeignEngine:
    """The corpus's graph, small and empty."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = 0
        self._process = self._start()

    def refusal(self, text: str, parameters: dict[str, Any], timeout: float | None = None) -> str:
        """What the engine says against a query; nothing if it runs."""
        refused: str = self._ask("refusal", text, parameters, timeout)
        return refused

    def plan(self, text: str, parameters: dict[str, Any]) -> str:
        """How the engine would run it; nothing for what it cannot read."""
        plan: str = self._ask("plan", text, parameters)
        return plan

    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = self._ask("counts")
        return counts

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        self._started += 1
        folder = self._folder / str(self._started)
        folder.mkdir()
        command = [sys.executable, "-m", "tests.guard.engine", str(folder)]
        return subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def _ask(self, method: str, *arguments: object) -> Any:
        """A statement that crashes the engine counts as refused; the engine is restarted."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump((method, arguments), self._process.stdin)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError):
            crashed = f"the engine ended with {self._process.wait()}"
            self.close()
            self._process = self._start()
            if method == "counts":
                return self._ask("counts")
            return crashed


class _Answers:
    def __init__(self, engine: GraphEngine) -> None:
        self._engine = engine

    def refusal(self, text: str, parameters: dict[str, Any], timeout: float | None) -> str:
        try:
            self._engine.query(text, parameters, timeout=timeout).close()
        except PenstockError as e:
            return e.message
        return ""

    def plan(self, text: str, parameters: dict[str, Any]) -> str:
        try:
            result = self._engine.query(f"EXPLAIN {text}", parameters)
        except PenstockError:
            return ""
        with closing(result):
            return "".join(str(batch.to_pylist()) for batch in result.batches(10))

    def counts(self) -> dict[str, int]:
        return self._engine.counts()


def main() -> None:
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    engine = open_engine(
        "ladybug", Opening(folder=Path(sys.argv[1]), memory_bytes=256 * 2**20, threads=1)
    )
    engine.create(GraphSchema(nodes=(PERSON, CITY), edges=(KNOWS, LIVES)))
    answers = _Answers(engine)
    while True:
        try:
            method, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            os._exit(0)
        pickle.dump(getattr(answers, method)(*arguments), replies)
        replies.flush()


if __name__ == "__main__":
    main()
