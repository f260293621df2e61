"""The engine process's side of the protocol: opens one graph, loads it and executes requests on
it.

Each public method of `Work` is a request that the server may send; it runs in the thread of the
channel that it came by. Methods that answer a client take a `Turn`, which tells the server what
they are at.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

from penstock.graph_server.engine.neighbourhood import Neighborhood, search
from penstock.graph_server.queries import graph_files
from penstock.graph_server.queries.results import Own, arrow_stream, encode, fetch, stream_rows
from penstock.graphdb.contract import Interrupt
from penstock.graphdb.errors import CapabilityMissing, CypherError, out_of_memory
from penstock.graphdb.files import arrow_file
from penstock.graphdb.registry import Opening, open_engine
from penstock.guard.cypher import CypherQuery, check_cypher
from penstock.kit import memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from penstock.graphdb.contract import Dangling, EdgeTable, GraphEngine, GraphSchema, NodeTable
    from penstock.kit.json_value import JsonObject, JsonValue

Phase: TypeAlias = Literal[0, 1, 2, 3]
IDLE: Phase = 0
EXECUTING: Phase = 1
CONVERTING: Phase = 2
"""The library makes Arrow of a result, and lets no other thread of Python in meanwhile."""
SENDING: Phase = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A property that an algorithm wrote; its values are in a file, to be written again after a
    restart."""

    label: str
    name: str
    file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query within the server's limits; `timeout` is what is left of its time."""

    text: str
    parameters: Mapping[str, JsonValue]
    timeout: float
    max_rows: int
    guard: bool

    def checked(self) -> CypherQuery:
        """The statement, if it only reads and has its parameters."""
        if self.guard:
            query = check_cypher(self.text)
        else:
            names = frozenset(self.parameters)
            query = CypherQuery(text=self.text, parameters=names, open_ended=False)
        check_parameters(query, self.parameters)
        return query

    def wanted(self, query: CypherQuery) -> dict[str, JsonValue]:
        return {k: v for k, v in self.parameters.items() if k in query.parameters}


class Opened(TypedDict):
    """The reply to `open`."""

    capabilities: JsonObject


class WrittenBack(TypedDict):
    """The reply to `write_back`: how many nodes got a value, and the properties of the label that
    algorithms wrote, with their types."""

    rows: int
    written: dict[str, str]


class Turn:
    """One request's stop cord, and where it says what it is at."""

    def __init__(self, tell: Callable[[Phase], None]) -> None:
        self.tell = tell
        self.cord = Interrupt(in_engine=lambda begins: tell(EXECUTING if begins else CONVERTING))


class Work:
    def __init__(self) -> None:
        self._engine: GraphEngine | None = None
        self._backend = ""
        self._limit: int | None = None
        self._base = 0
        self._unlimited = 0
        self._limiting = threading.Lock()
        self._own: Own | None = None

    # filling

    def open(self, backend: str, opening: Opening) -> Opened:
        """Open an empty graph, or the one that was sealed where the opening has its schema."""
        self._backend = backend
        self._engine = open_engine(backend, opening)
        return {"capabilities": asdict(self._engine.capabilities)}

    def create(self, schema: GraphSchema) -> None:
        self.engine.create(schema)

    def load(
        self, table: NodeTable | EdgeTable, files: Sequence[Path], dangling: Dangling
    ) -> dict[str, int]:
        loaded = self.engine.load(table, files, dangling=dangling)
        return {"rows": loaded.rows, "dropped": loaded.dropped}

    def counts(self) -> dict[str, int]:
        return self.engine.counts()

    def seal(self) -> None:
        """What was loaded outlives this process from here on."""
        self.engine.seal()

    def restrict(self, query_bytes: int | None) -> None:
        """Queries may take this much memory together from here on."""
        memory.give_back()
        with self._limiting:
            self._base = memory.data_bytes()
            self._limit = query_bytes
            self._apply_limit()

    def grant(self, more: int) -> None:
        """Raise the limit for what is not a query's: a thread's stack."""
        with self._limiting:
            self._base += more
            self._apply_limit()

    def grown(self) -> dict[str, int]:
        """Memory beyond what there was before the first query, after giving back what is free."""
        memory.give_back()
        return {"bytes": memory.data_bytes() - self._base}

    def close(self) -> None:
        """Leave nothing behind in a server that is not ours."""
        self.engine.close()

    # algorithms

    def node_file(self, label: str, properties: Sequence[str], path: Path) -> None:
        with self._without_limit():
            arrow_file.write(self.engine.node_table(label, properties), path)

    def edge_file(self, table: EdgeTable, properties: Sequence[str], path: Path) -> None:
        with self._without_limit():
            arrow_file.write(self.engine.edge_table(table, properties), path)

    def write_back(self, written: Written) -> WrittenBack:
        with self._without_limit():
            table = arrow_file.read(written.file)
            rows = self.engine.write_back(written.label, written.name, table)
        self._own = None
        return {"rows": rows, "written": self.engine.written(written.label)}

    # answering

    def query(self, asked: Question, turn: Turn) -> bytes:
        """The answer as JSON, all of it."""
        began = time.perf_counter()
        query = asked.checked()
        text = f"{query.text} LIMIT {asked.max_rows + 1}" if query.open_ended else query.text
        result = self.engine.query(
            text, asked.wanted(query), timeout=asked.timeout, interrupt=turn.cord
        )
        try:
            rows = fetch(result, max_rows=asked.max_rows, own=self.own, check=turn.cord.check)
        finally:
            result.close()
        return encode(rows, milliseconds=round((time.perf_counter() - began) * 1000))

    def stream(self, asked: Question, turn: Turn) -> Iterator[memoryview | bytes]:
        """The result as an Arrow stream, batch by batch; errors are raised before the first."""
        if not self.engine.capabilities.arrow:
            raise CapabilityMissing.of(self._backend, "arrow")
        query = asked.checked()
        result = self.engine.query(
            query.text, asked.wanted(query), timeout=asked.timeout, interrupt=turn.cord
        )
        try:
            stream = arrow_stream(result.batches(stream_rows(result)))
            yield from (next(stream), next(stream))
            yield from stream
        finally:
            result.close()

    def subgraph(self, asked: Neighborhood, turn: Turn) -> bytes:
        nodes, edges, truncated = search(self.engine, self.own, asked, turn.cord)
        return graph_files.WRITERS[asked.format](nodes, edges, truncated)

    @property
    def engine(self) -> GraphEngine:
        if self._engine is None:
            raise CypherError("The graph is not open.")
        return self._engine

    @property
    def own(self) -> Own:
        """Which properties belong to which label; those that algorithms wrote are among them."""
        if self._own is None:
            self._own = Own.of(self.engine.schema, self.engine.written)
        return self._own

    @contextmanager
    def accounted(self, *, limited: bool) -> Iterator[None]:
        """An allocation that fails is an error with the figure that it failed at."""
        try:
            with nullcontext() if limited else self._without_limit():
                yield
        except MemoryError as e:
            memory.give_back()
            raise out_of_memory(self._limit) from e

    @contextmanager
    def _without_limit(self) -> Iterator[None]:
        """What the server asks for itself is not hostile, and as large as the graph."""
        with self._limiting:
            self._unlimited += 1
            self._apply_limit()
        try:
            yield
        finally:
            memory.give_back()
            with self._limiting:
                self._unlimited -= 1
                self._apply_limit()

    def _apply_limit(self) -> None:
        is_limited = self._limit is not None and not self._unlimited
        memory.limit(self._base + self._limit if is_limited and self._limit is not None else None)


def check_parameters(query: CypherQuery, parameters: Mapping[str, JsonValue]) -> None:
    """The engines would take a parameter that is not there for null."""
    if missing := sorted(query.parameters - parameters.keys()):
        raise CypherError(
            f"The query names ${missing[0]}, which is not among its parameters.", missing=missing
        )
