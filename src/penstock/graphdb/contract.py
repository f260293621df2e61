"""What a graph database must do, whichever it is.

A `GraphEngine` is one opened database that holds one graph. It is filled once (`create`, then
`load`, nodes before edges, then `seal`), and read by many threads from then on; `write_back` is the
only write after the load. A sealed graph can be opened again after its process was killed, as it
was when it was sealed: what was written back since is written back again by whoever opens it. Every
call blocks, so call it in a thread. Text that reaches `query` has passed the Cypher guard: the
engine does not judge it. An allocation that fails is a `MemoryError`.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from penstock.graphdb.errors import QueryInterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    JsonValue: TypeAlias = (
        bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None
    )

Dangling: TypeAlias = Literal["fail", "drop"]
"""What becomes of edges whose endpoints are not there."""
OFFSET, KEY, SOURCE, TARGET = "_offset", "_key", "_src", "_dst"
"""Columns of our own beside properties, whose names begin with a letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend can do; a request for anything else is refused with the capability's name."""

    arrow: bool
    bulk_parquet: bool
    interrupt: bool
    networkx: bool
    native_algorithms: bool
    write_back: bool
    algorithm_mode: Literal["library", "engine"]
    memory_model: Literal["disk", "memory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A column: `type` is the mapping's name for it, `arrow` the files' exact type, which alone
    knows what is inside a LIST, MAP or STRUCT."""

    name: str
    type: str
    arrow: pa.DataType | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTable:
    label: str
    key: Property
    properties: tuple[Property, ...] = ()

    @property
    def columns(self) -> tuple[Property, ...]:
        return (self.key, *self.properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeTable:
    """The edges of one type between one pair of labels; a type may have several pairs."""

    type: str
    from_node: str
    to_node: str
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSchema:
    nodes: tuple[NodeTable, ...]
    edges: tuple[EdgeTable, ...]

    def node(self, label: str) -> NodeTable | None:
        return next((table for table in self.nodes if table.label == label), None)

    def pairs(self, edge_type: str) -> tuple[EdgeTable, ...]:
        return tuple(table for table in self.edges if table.type == edge_type)

    @property
    def edge_types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(table.type for table in self.edges))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a bulk load left in the table; `dropped` edges had no endpoint and were not wanted."""

    rows: int
    dropped: int = 0


@dataclass(slots=True)
class Interrupt:
    """A query's stop cord: pulled from any thread, before, while or after the query runs, as often
    as one likes.

    `in_engine` hears when the engine begins to execute and when it has ended: what follows is our
    own work.
    """

    in_engine: Callable[[bool], object] = field(default=lambda _: None)
    _pulled: threading.Event = field(default_factory=threading.Event)
    _stop: Callable[[], object] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def pulled(self) -> bool:
        return self._pulled.is_set()

    def check(self) -> None:
        """Between two pieces of work: end here if somebody wants that."""
        if self.pulled:
            raise QueryInterrupted("The query was stopped.")

    def pull(self) -> None:
        """Engines forget a stop that comes before their first step, so who waits for the end pulls
        again."""
        with self._lock:
            self._pulled.set()
            if self._stop is not None:
                self._stop()

    @contextmanager
    def stopping(self, stop: Callable[[], object]) -> Iterator[None]:
        """While the block runs, a pull calls `stop`; never afterwards, when the connection may
        serve another."""
        self.in_engine(True)
        with self._lock:
            self._stop = stop
        try:
            yield
        finally:
            with self._lock:
                self._stop = None
            self.in_engine(False)


class Result(Protocol):
    """The answer of one query. `types` are those of the wire (STRING, INT64, NODE, LIST<INT64> …),
    one a column.

    In the batches a node is a struct of `_id` ("Label:key"), `_label` and the properties of all
    labels that the query may give; an edge has `_id`, `_type`, `_src`, `_dst` and properties; a
    path has `_nodes` and `_rels`.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: int

    def batches(self, size: int) -> Iterator[pa.RecordBatch]:
        """All rows, `size` at a time, once; an empty answer is one empty batch, for the columns'
        sake."""
        ...

    def close(self) -> None: ...


class GraphEngine(Protocol):
    capabilities: Capabilities
    schema: GraphSchema

    def create(self, schema: GraphSchema) -> None:
        """Make the tables, nodes before edges; `SchemaRefused` names the table."""
        ...

    def load(
        self, table: NodeTable | EdgeTable, files: Sequence[Path], *, dangling: Dangling = "fail"
    ) -> Loaded:
        """Bulk-load all files of one table at once. Of an edge's files the first two columns are
        its endpoints' keys.

        `LoadRefused` says why not, with examples: keys that are there twice, endpoints that are
        missing.
        """
        ...

    def seal(self) -> None:
        """Everything was loaded: make it last, for an `Opening` with its schema."""
        ...

    def query(
        self,
        text: str,
        parameters: Mapping[str, JsonValue] | None = None,
        *,
        timeout: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> Result:
        """Run one statement; `QueryInterrupted` when the cord was pulled or the time (in seconds)
        was up."""
        ...

    def key_of(self, table: NodeTable, value: str) -> str:
        """The expression that makes this table's key of `value`, a text or a number in the query."""
        ...

    def counts(self) -> dict[str, int]:
        """Rows of each label, and of each edge table as `TYPE:From:To`, counted now."""
        ...

    def node_table(self, label: str, properties: Sequence[str] = ()) -> pa.Table:
        """Columns OFFSET (int64, dense from 0 within the label), KEY, and the properties by name."""
        ...

    def edge_table(self, table: EdgeTable, properties: Sequence[str] = ()) -> pa.Table:
        """Columns SOURCE and TARGET (int64, offsets within their labels) and the properties by
        name."""
        ...

    def write_back(self, label: str, name: str, data: pa.Table) -> int:
        """Set property `name` of the nodes in `data` (columns `key`, `value`); nodes that are not
        in it lose theirs.

        The property is added when the label has none of that name; one of the mapping is never
        overwritten.
        """
        ...

    def written(self, label: str) -> dict[str, str]:
        """The properties that `write_back` added to a label, with their types on the wire."""
        ...

    def close(self) -> None: ...
