"""What Ladybug and Ryugraph, descendants of one engine, have in common: all but their library's
name.

A connection runs one statement at a time, so each query takes one from a pool and gives it back
when the engine has made its result, which stands apart from the connection. After a failed COPY the
library's memory cannot be trusted (it loses keys, and may crash at the next call), so what failed
is found out from the files, and the process should end.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.graphdb import load_diagnosis, parquet_conformance, statements
from penstock.graphdb.contract import (
    KEY,
    OFFSET,
    SOURCE,
    TARGET,
    Capabilities,
    EdgeTable,
    GraphSchema,
    Interrupt,
    Loaded,
    NodeTable,
    Property,
)
from penstock.graphdb.embedded_result import EmbeddedResult, is_broken_in_arrow, row_batches
from penstock.graphdb.errors import (
    CypherError,
    LoadRefused,
    QueryInterrupted,
    SchemaRefused,
    out_of_memory,
)
from penstock.graphdb.parameters import harmless, inlined
from penstock.graphdb.row_bounds import with_row_bounds
from penstock.graphdb.shapes import Shapes, named
from penstock.graphdb.skipped_sorts import first_row_unsorted
from penstock.graphdb.typenames import nested, quoted, wire_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from penstock.graphdb.contract import Dangling, JsonValue
    from penstock.graphdb.registry import Opening

CAPABILITIES = Capabilities(
    arrow=True,
    bulk_parquet=True,
    interrupt=True,
    networkx=True,
    native_algorithms=True,
    write_back=True,
    algorithm_mode="library",
    memory_model="disk",
)
_FILE = "graph.db"
_COPIED = re.compile(r"(\d+) tuples? ha(?:s|ve) been copied")
_MADE = {"DATE": "date({})", "UUID": "uuid({})"}
LONGEST_PATH = 1000
"""Steps of a path whose length a query leaves open or asks for; the engines' own default is 30."""
_ROWS_AT_ONCE = 65_536
"""Of a table for algorithms: the library lets no other thread of Python in while it makes a chunk."""
_LEAST_CACHE = 64 * 1024 * 1024


class EmbeddedEngine:
    capabilities = CAPABILITIES

    def __init__(
        self,
        library: ModuleType,
        opening: Opening,
        *,
        nested_arrow: bool = True,
        inlines_parameters: bool = False,
        holds_extremes: bool = True,
        settings: Sequence[str] = (),
        rewritten: Callable[[str], str] = lambda text: text,
        replanned: Callable[[str, Callable[[str], str]], str] = lambda text, _explain: text,
    ) -> None:
        """`nested_arrow`: whether structs and UUIDs with nulls come out of the library's Arrow
        export whole; `inlines_parameters`: whether parameters are written into the statement as
        literals; `holds_extremes`: whether NaN and the least integers are stored as such;
        `settings` are for each connection; `rewritten` makes of a query one that the engine answers
        rightly, or refuses it; `replanned` does the same by the plan, which it gets from the
        function beside the query."""
        self.schema = opening.schema or GraphSchema(nodes=(), edges=())
        self._library = library
        self._folder = opening.folder
        self._cache_bytes = max(_LEAST_CACHE, opening.memory_bytes)
        self._nested_arrow = nested_arrow
        self._inlines_parameters = inlines_parameters
        self._holds_extremes = holds_extremes
        self._settings = (f"var_length_extend_max_depth = {LONGEST_PATH}", *settings)
        self._rewritten = rewritten
        self._replanned = replanned
        if opening.schema is not None:
            _forget_unsealed(opening.folder)
        self._database = library.Database(
            str(opening.folder / _FILE),
            buffer_pool_size=self._cache_bytes,
            max_num_threads=opening.threads,
            auto_checkpoint=False,
        )
        self._idle: deque[Any] = deque()
        self._writing = threading.Lock()
        self._labels: dict[int, str] = {}
        self._names: dict[str, pa.Array] = {}
        self._sources: dict[str, Sequence[Path]] = {}
        self._written: dict[str, dict[str, str]] = {}
        if opening.schema is not None:
            self._prepare()

    def create(self, schema: GraphSchema) -> None:
        self.schema = schema
        for table in schema.nodes:
            self._define(f"Node {table.label}", statements.create_node(table))
        for edge_type in schema.edge_types:
            self._define(f"Edge {edge_type}", statements.create_edge(edge_type, schema))
        self._prepare()

    def seal(self) -> None:
        self._rows("CHECKPOINT")
        parquet_conformance.remove_copies(self._folder)

    def load(
        self, table: NodeTable | EdgeTable, files: Sequence[Path], *, dangling: Dangling = "fail"
    ) -> Loaded:
        if not files:
            return Loaded(rows=0)
        if not self._holds_extremes:
            load_diagnosis.refuse_nan(table, files)
            load_diagnosis.refuse_least_integers(table, files)
        if isinstance(table, NodeTable):
            return self._load_nodes(table, self._conformed(table.columns, files))
        return self._load_edges(table, self._conformed(table.properties, files), dangling)

    def query(
        self,
        text: str,
        parameters: Mapping[str, JsonValue] | None = None,
        *,
        timeout: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> EmbeddedResult:
        cord, given = interrupt or Interrupt(), harmless(parameters or {})
        text = with_row_bounds(text, given)
        text, given = inlined(text, given, every=self._inlines_parameters)
        text = self._rewritten(text)
        until = time.monotonic() + timeout if timeout else None
        with self._connection() as connection, cord.stopping(connection.interrupt):
            _limit_time(connection, until)
            cord.check()
            try:
                with _reading(connection):
                    text = self._replanned(text, partial(_plan, connection, given))
                    found = _execute_sorted(connection, text, given, until)
            except _CacheFull:
                raise out_of_memory(self._cache_bytes, of="the engine's cache has") from None
        return EmbeddedResult(found, self._shapes(), nested_arrow=self._nested_arrow)

    def key_of(self, table: NodeTable, value: str) -> str:
        return _MADE.get(table.key.type, "{}").format(value)

    def counts(self) -> dict[str, int]:
        nodes = {
            t.label: self._count(f"MATCH (n:{quoted(t.label)}) RETURN count(*)")
            for t in self.schema.nodes
        }
        edges = {
            f"{t.type}:{t.from_node}:{t.to_node}": self._count(
                statements.match_edges(t) + "count(*)"
            )
            for t in self.schema.edges
        }
        return nodes | edges

    def node_table(self, label: str, properties: Sequence[str] = ()) -> pa.Table:
        key = self._node(label).key.name
        wanted = "".join(f", n.{quoted(name)} AS {quoted(name)}" for name in properties)
        found = self._table(
            f"MATCH (n:{quoted(label)}) RETURN offset(id(n)) AS {OFFSET}, n.{quoted(key)} AS {KEY}{wanted}"
        )
        return found.take(pc.sort_indices(found.column(OFFSET)))

    def edge_table(self, table: EdgeTable, properties: Sequence[str] = ()) -> pa.Table:
        wanted = "".join(f", e.{quoted(name)} AS {quoted(name)}" for name in properties)
        ends = f"offset(id(a)) AS {SOURCE}, offset(id(b)) AS {TARGET}"
        return self._table(f"{statements.match_edges(table)}{ends}{wanted}")

    def write_back(self, label: str, name: str, data: pa.Table) -> int:
        table = self._node(label)
        if any(p.name == name for p in table.columns):
            raise CypherError(
                f"{label}.{name} comes from the mapping; it is never overwritten.",
                hint="Choose another name.",
            )
        with self._writing:
            self._add_property(label, name, nested(data.schema.field("value").type, name))
            return self._set(table, name, data)

    def written(self, label: str) -> dict[str, str]:
        return {name: wire_type(kind) for name, kind in self._written.get(label, {}).items()}

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
        self._database.close()

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._library.Connection(self._database)
            for setting in self._settings:
                _execute(connection, f"CALL {setting}").close()
        try:
            yield connection
        except QueryInterrupted:
            # Whether its transaction ended as well, nobody can say.
            connection.close()
            raise
        except BaseException:
            self._idle.append(connection)
            raise
        self._idle.append(connection)

    def _prepare(self) -> None:
        # What is written after the seal is written again by whoever opens the files; and Ryugraph's
        # checkpoint crashes on a column that was dropped.
        self._rows("CALL force_checkpoint_on_close = false")
        self._labels = {row[0]: row[1] for row in self._rows("CALL show_tables() RETURN id, name")}

    def _define(self, what: str, statement: str) -> None:
        try:
            self._rows(statement)
        except CypherError as e:
            raise SchemaRefused(f"{what} could not be created: {e.message}") from e

    def _conformed(self, columns: Sequence[Property], files: Sequence[Path]) -> list[Path]:
        return parquet_conformance.conform(files, {p.name: p.type for p in columns}, self._folder)

    def _load_nodes(self, table: NodeTable, files: Sequence[Path]) -> Loaded:
        self._sources[table.label] = files
        statement = statements.copy_nodes(table, files)
        try:
            return Loaded(rows=self._copy(statement))
        except MemoryError as e:
            raise load_diagnosis.too_large(f"Node {table.label}", self._cache_bytes) from e
        except CypherError as e:
            raise load_diagnosis.of_nodes(table, files, e.message) from e

    def _load_edges(self, table: EdgeTable, files: Sequence[Path], dangling: Dangling) -> Loaded:
        statement = statements.copy_edges(table, self.schema, files, drop=dangling == "drop")
        try:
            rows = self._copy(statement)
        except MemoryError as e:
            raise load_diagnosis.too_large(f"Edge {table.type}", self._cache_bytes) from e
        except CypherError as e:
            raise load_diagnosis.of_edges(table, self._missing(table, files), e.message) from e
        total = (
            sum(pq.read_metadata(file).num_rows for file in files) if dangling == "drop" else rows
        )
        return Loaded(rows=rows, dropped=total - rows)

    def _missing(self, table: EdgeTable, files: Sequence[Path]) -> list[load_diagnosis.Missing]:
        """From the files alone: after a failed COPY the library may crash at the next call."""
        labels = (table.from_node, table.to_node)
        starts, ends = (
            load_diagnosis.keys(self._node(label), self._sources.get(label, ())) for label in labels
        )
        return load_diagnosis.missing_ends(table, files, starts, ends)

    def _copy(self, statement: str) -> int:
        said = str(self._rows(statement)[0][0])
        counted = _COPIED.search(said)
        if counted is None:
            raise LoadRefused(f"The engine did not say how many rows it took: {said}")
        return int(counted[1])

    def _add_property(self, label: str, name: str, kind: str) -> None:
        known = self._written.setdefault(label, {})
        if name in known and known[name] != kind:
            self._rows(f"ALTER TABLE {quoted(label)} DROP {quoted(name)}")
            del known[name]
        if name not in known:
            self._rows(f"ALTER TABLE {quoted(label)} ADD {quoted(name)} {kind}")
            known[name] = kind

    def _set(self, table: NodeTable, name: str, data: pa.Table) -> int:
        """In one transaction, so that a query sees the old column or the new one."""
        node, key, target = quoted(table.label), quoted(table.key.name), quoted(name)
        same = f"n.{key} = {'uuid(key)' if table.key.type == 'UUID' else 'key'}"
        with self._connection() as connection:
            connection.set_query_timeout(0)
            _execute(connection, "BEGIN TRANSACTION").close()
            try:
                if data.num_rows < self._count(f"MATCH (n:{node}) RETURN count(*)"):
                    _execute(connection, f"MATCH (n:{node}) SET n.{target} = NULL").close()
                statement = f"LOAD FROM $data MATCH (n:{node}) WHERE {same} SET n.{target} = value RETURN count(*)"
                found = _execute(connection, statement, {"data": data})
                written: int = found.get_next()[0]
                found.close()
                _execute(connection, "COMMIT").close()
            except BaseException:
                _execute(connection, "ROLLBACK").close()
                raise
        return written

    def _node(self, label: str) -> NodeTable:
        table = self.schema.node(label)
        if table is None:
            raise CypherError(f"There is no label {label[:80]!r}.")
        return table

    def _rows(self, statement: str) -> list[list[Any]]:
        with self._connection() as connection:
            connection.set_query_timeout(0)
            found = _execute(connection, statement)
        rows: list[list[Any]] = found.get_all()
        found.close()
        return rows

    def _table(self, statement: str) -> pa.Table:
        with self._connection() as connection:
            connection.set_query_timeout(0)
            found = _execute(connection, statement)
        if not self._nested_arrow and any(map(is_broken_in_arrow, found.get_column_data_types())):
            table = pa.Table.from_batches(row_batches(found, _ROWS_AT_ONCE)).rename_columns(
                found.get_column_names()
            )
        else:
            table = found.get_as_arrow(_ROWS_AT_ONCE, fallbackExtensionTypes=True)
        found.close()
        return table

    def _count(self, statement: str) -> int:
        return int(self._rows(statement)[0][0])

    def _shapes(self) -> Shapes:
        return Shapes({table.label: table.key.name for table in self.schema.nodes}, self._names_of)

    def _names_of(self, table: int) -> pa.Array | None:
        label = self._labels.get(table)
        if label is None or self.schema.node(label) is None:
            return None
        if label not in self._names:
            self._names[label] = named(label, self.node_table(label).column(KEY).combine_chunks())
        return self._names[label]


def _execute(connection: Any, text: str, parameters: Mapping[str, Any] | None = None) -> Any:
    """The library raises whatever comes; all of it is the statement's fault but a stop."""
    try:
        found = (
            connection.execute(text, dict(parameters)) if parameters else connection.execute(text)
        )
    except (RuntimeError, ValueError, TypeError, OverflowError) as e:
        raise _fault(str(e)) from e
    if isinstance(found, list):
        raise CypherError("One statement at a time, please.")
    return found


def _limit_time(connection: Any, until: float | None) -> None:
    left = 0 if until is None else max(0.0, until - time.monotonic())
    connection.set_query_timeout(int(left * 1000) + 1 if until is not None else 0)


def _execute_sorted(
    connection: Any, text: str, parameters: Mapping[str, Any], until: float | None
) -> Any:
    """Execute a statement that may skip more sorted rows than there are."""
    unsorted = first_row_unsorted(text)
    if unsorted is not None:
        found = _execute(connection, unsorted, parameters)
        if not found.get_num_tuples():
            return found
        found.close()
        _limit_time(connection, until)
    return _execute(connection, text, parameters)


def _plan(connection: Any, parameters: Mapping[str, Any], text: str) -> str:
    """The plan of a statement; nothing for one that has none, such as a wrong one."""
    try:
        found = _execute(connection, f"EXPLAIN {text}", parameters)
    except CypherError:
        return ""
    plan: str = found.get_next()[0]
    found.close()
    return plan


@contextmanager
def _reading(connection: Any) -> Iterator[None]:
    """The engine's own refusal to write, behind the guard's; a failed statement has ended its
    transaction itself."""
    _execute(connection, "BEGIN TRANSACTION READ ONLY").close()
    try:
        yield
    finally:
        with suppress(CypherError):
            _execute(connection, "COMMIT").close()


class _CacheFull(MemoryError):
    """The engine's buffer pool has no room for what a statement holds at once."""


def _fault(said: str) -> Exception:
    if said.startswith("Interrupted"):
        return QueryInterrupted("The query was stopped.")
    if "Unable to cast Python instance" in said:
        return CypherError(
            "A parameter has a value that the engine cannot hold.", hint="Integers have 64 bits."
        )
    if said.startswith("std::bad_alloc"):
        return MemoryError(said)
    if said.startswith("Buffer manager exception"):
        return _CacheFull(said)
    return CypherError(said)


def _forget_unsealed(folder: Path) -> None:
    """Leave of an engine's folder what was there when the graph was sealed: the log of later writes
    goes."""
    for file in folder.iterdir():
        if file.name.startswith(f"{_FILE}."):
            file.unlink()
