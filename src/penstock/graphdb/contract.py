"""The contract of a graph database backend.

A `GraphEngine` is one opened database that holds one graph. It is filled once (`create`, then
`load`, nodes before edges, then `seal`), and read by many threads from then on; `write_back` is the
only write after the load. A sealed graph can be reopened after its process was killed, in its
sealed state: the caller repeats later write-backs. Every call blocks, so call it in a thread. Text
passed to `query` has passed the Cypher guard: the engine does not check it. A failed allocation
raises `MemoryError`.
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

    from penstock.kit.json_value import JsonValue

Dangling: TypeAlias = Literal["fail", "drop"]
"""What to do with edges whose endpoints are missing."""
OFFSET, KEY, SOURCE, TARGET = "_offset", "_key", "_src", "_dst"
"""Internal columns; they cannot collide with properties, whose names begin with a letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend supports; any other request is refused with the capability's name."""

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
    """A column: `type` is the type's name in the mapping, `arrow` the exact type in the files, the
    only one with the item types of a LIST, MAP or STRUCT."""

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
    """The result of a bulk load; `dropped` counts edges skipped for a missing endpoint."""

    rows: int
    dropped: int = 0


@dataclass(slots=True)
class Interrupt:
    """Cancellation token of a query; any thread may pull it, at any time and repeatedly.

    `in_engine` is called with True when the engine begins to execute, and with False when it ends.
    """

    in_engine: Callable[[bool], object] = field(default=lambda _: None)
    _pulled: threading.Event = field(default_factory=threading.Event)
    _stop: Callable[[], object] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def pulled(self) -> bool:
        return self._pulled.is_set()

    def check(self) -> None:
        """Raise if the query was cancelled; called between two pieces of work."""
        if self.pulled:
            raise QueryInterrupted("The query was stopped.")

    def pull(self) -> None:
        """Cancel the query. Engines ignore a stop before their first step, so a caller that waits
        for the end pulls again."""
        with self._lock:
            self._pulled.set()
            if self._stop is not None:
                self._stop()

    @contextmanager
    def stopping(self, stop: Callable[[], object]) -> Iterator[None]:
        """While the block runs, a pull calls `stop`; never afterwards, when the connection may run
        another query."""
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
    """The result of one query. `types` has the wire type of each column (STRING, INT64, NODE,
    LIST<INT64> …).

    In the batches a node is a struct of `_id` ("Label:key"), `_label` and the properties of all
    labels that the query may return; an edge has `_id`, `_type`, `_src`, `_dst` and properties; a
    path has `_nodes` and `_rels`.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: int

    def batches(self, size: int) -> Iterator[pa.RecordBatch]:
        """All rows, `size` at a time; can be read once. An empty result is one empty batch, so that
        it has columns."""
        ...

    def close(self) -> None: ...


class GraphEngine(Protocol):
    capabilities: Capabilities
    schema: GraphSchema

    def create(self, schema: GraphSchema) -> None:
        """Create the tables, nodes before edges; `SchemaRefused` names the table."""
        ...

    def load(
        self, table: NodeTable | EdgeTable, files: Sequence[Path], *, dangling: Dangling = "fail"
    ) -> Loaded:
        """Bulk-load all files of one table at once. The first two columns of an edge's files are
        its endpoints' keys.

        `LoadRefused` gives the reason with examples: duplicate keys, missing endpoints.
        """
        ...

    def seal(self) -> None:
        """Persist the loaded graph, so that an `Opening` with its schema can reopen it."""
        ...

    def query(
        self,
        text: str,
        parameters: Mapping[str, JsonValue] | None = None,
        *,
        timeout: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> Result:
        """Run one statement; raises `QueryInterrupted` when it was cancelled or `timeout` (in
        seconds) has passed."""
        ...

    def key_of(self, table: NodeTable, value: str) -> str:
        """The expression that converts `value`, a text or a number in the query, to this table's
        key."""
        ...

    def counts(self) -> dict[str, int]:
        """The current number of rows of each label, and of each edge table as `TYPE:From:To`."""
        ...

    def node_table(self, label: str, properties: Sequence[str] = ()) -> pa.Table:
        """Columns OFFSET (int64, dense from 0 within the label), KEY, and the named properties."""
        ...

    def edge_table(self, table: EdgeTable, properties: Sequence[str] = ()) -> pa.Table:
        """Columns SOURCE and TARGET (int64, offsets within their labels) and the named
        properties."""
        ...

    def write_back(self, label: str, name: str, data: pa.Table) -> int:
        """Set property `name` of the nodes in `data` (columns `key`, `value`), and clear it on all
        other nodes.

        The property is added when the label has none of that name; a property of the mapping is
        never overwritten.
        """
        ...

    def written(self, label: str) -> dict[str, str]:
        """The properties that `write_back` added to a label, with their wire types."""
        ...

    def close(self) -> None: ...
