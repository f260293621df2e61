"""The backend shared by Ladybug and Ryugraph, two forks of one embedded engine.

A connection runs one statement at a time, so each query takes one from a pool and returns it once
the engine has built the result, which does not depend on the connection. After a failed COPY the
library's memory is corrupt (it loses keys, and may crash at the next call), so the failure is
diagnosed from the files, and the process should end.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

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
from penstock.graphdb.cypher.parameters import harmless, inlined
from penstock.graphdb.cypher.row_bounds import with_row_bounds
from penstock.graphdb.cypher.skipped_sorts import first_row_unsorted
from penstock.graphdb.embedded import statements
from penstock.graphdb.embedded.result import EmbeddedResult, is_broken_in_arrow, row_batches
from penstock.graphdb.embedded.shapes import Shapes, named
from penstock.graphdb.errors import (
    CypherError,
    LoadRefused,
    QueryInterrupted,
    SchemaRefused,
    out_of_memory,
)
from penstock.graphdb.files import load_diagnosis, parquet_conformance
from penstock.graphdb.typenames import nested, quoted, wire_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from penstock.graphdb.contract import Dangling
    from penstock.graphdb.embedded.library import LibraryConnection, LibraryResult, Rows
    from penstock.graphdb.registry import Opening
    from penstock.kit.json_value import JsonValue

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
_KEY_EXPRESSIONS = {"DATE": "date({})", "UUID": "uuid({})"}
LONGEST_PATH = 1000
"""Maximum steps of a path of variable length; the engines' own default is 30."""
_ROWS_AT_ONCE = 65_536
"""Chunk size of tables for algorithms: the library holds the GIL while it builds a chunk."""
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
        """`nested_arrow`: whether the library's Arrow export is correct for structs and UUIDs with
        nulls; `inlines_parameters`: whether parameters are written into the statement as literals;
        `holds_extremes`: whether NaN and the least integers are stored correctly; `settings` apply
        to each connection; `rewritten` turns a query into one that the engine answers correctly, or
        refuses it; `replanned` does the same by the query's plan, which its second argument
        returns."""
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
            _discard_unsealed(opening.folder)
        self._database = library.Database(
            str(opening.folder / _FILE),
            buffer_pool_size=self._cache_bytes,
            max_num_threads=opening.threads,
            auto_checkpoint=False,
        )
        self._idle: deque[LibraryConnection] = deque()
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
        interrupt, arguments = interrupt or Interrupt(), harmless(parameters or {})
        text = with_row_bounds(text, arguments)
        text, arguments = inlined(text, arguments, every=self._inlines_parameters)
        text = self._rewritten(text)
        until = time.monotonic() + timeout if timeout else None
        with self._connection() as connection, interrupt.stopping(connection.interrupt):
            _limit_time(connection, until)
            interrupt.check()
            try:
                with _read_transaction(connection):
                    text = self._replanned(text, partial(_plan, connection, arguments))
                    result = _execute_sorted(connection, text, arguments, until)
            except _CacheFull:
                raise out_of_memory(self._cache_bytes, of="the engine's cache has") from None
        return EmbeddedResult(result, self._shapes(), nested_arrow=self._nested_arrow)

    def key_of(self, table: NodeTable, value: str) -> str:
        return _KEY_EXPRESSIONS.get(table.key.type, "{}").format(value)

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
        columns = "".join(f", n.{quoted(name)} AS {quoted(name)}" for name in properties)
        table = self._table(
            f"MATCH (n:{quoted(label)})"
            f" RETURN offset(id(n)) AS {OFFSET}, n.{quoted(key)} AS {KEY}{columns}"
        )
        return table.take(pc.sort_indices(table.column(OFFSET)))

    def edge_table(self, table: EdgeTable, properties: Sequence[str] = ()) -> pa.Table:
        columns = "".join(f", e.{quoted(name)} AS {quoted(name)}" for name in properties)
        ends = f"offset(id(a)) AS {SOURCE}, offset(id(b)) AS {TARGET}"
        return self._table(f"{statements.match_edges(table)}{ends}{columns}")

    def write_back(self, label: str, name: str, data: pa.Table) -> int:
        table = self._node(label)
        if any(p.name == name for p in table.columns):
            raise CypherError(
                f"{label}.{name} comes from the mapping and cannot be overwritten.",
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
    def _connection(self) -> Iterator[LibraryConnection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._library.Connection(self._database)
            for setting in self._settings:
                _execute(connection, f"CALL {setting}").close()
        try:
            yield connection
        except QueryInterrupted:
            # Its transaction may still be open.
            connection.close()
            raise
        except BaseException:
            self._idle.append(connection)
            raise
        self._idle.append(connection)

    def _prepare(self) -> None:
        # The caller repeats writes after the seal, and Ryugraph's checkpoint crashes on a dropped
        # column.
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
        """Read from the files alone: after a failed COPY the library may crash at the next call."""
        labels = (table.from_node, table.to_node)
        starts, ends = (
            load_diagnosis.keys(self._node(label), self._sources.get(label, ())) for label in labels
        )
        return load_diagnosis.missing_ends(table, files, starts, ends)

    def _copy(self, statement: str) -> int:
        message = str(self._rows(statement)[0][0])
        counted = _COPIED.search(message)
        if counted is None:
            raise LoadRefused(f"The engine did not report how many rows it loaded: {message}")
        return int(counted[1])

    def _add_property(self, label: str, name: str, kind: str) -> None:
        types = self._written.setdefault(label, {})
        if name in types and types[name] != kind:
            self._rows(f"ALTER TABLE {quoted(label)} DROP {quoted(name)}")
            del types[name]
        if name not in types:
            self._rows(f"ALTER TABLE {quoted(label)} ADD {quoted(name)} {kind}")
            types[name] = kind

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
                statement = (
                    f"LOAD FROM $data MATCH (n:{node}) WHERE {same}"
                    f" SET n.{target} = value RETURN count(*)"
                )
                result = _execute(connection, statement, {"data": data})
                written: int = result.get_next()[0]
                result.close()
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

    def _rows(self, statement: str) -> Rows:
        with self._connection() as connection:
            connection.set_query_timeout(0)
            result = _execute(connection, statement)
        rows = result.get_all()
        result.close()
        return rows

    def _table(self, statement: str) -> pa.Table:
        with self._connection() as connection:
            connection.set_query_timeout(0)
            result = _execute(connection, statement)
        if not self._nested_arrow and any(map(is_broken_in_arrow, result.get_column_data_types())):
            table = pa.Table.from_batches(row_batches(result, _ROWS_AT_ONCE)).rename_columns(
                result.get_column_names()
            )
        else:
            table = result.get_as_arrow(_ROWS_AT_ONCE, fallbackExtensionTypes=True)
        result.close()
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


def _execute(
    connection: LibraryConnection, text: str, parameters: Mapping[str, object] | None = None
) -> LibraryResult:
    """The library raises built-in exceptions; all but interrupts are errors of the statement."""
    try:
        result = (
            connection.execute(text, dict(parameters)) if parameters else connection.execute(text)
        )
    except (RuntimeError, ValueError, TypeError, OverflowError) as e:
        raise _as_error(str(e)) from e
    if isinstance(result, list):
        raise CypherError("Only one statement can be run at a time.")
    return result


def _limit_time(connection: LibraryConnection, until: float | None) -> None:
    left = 0 if until is None else max(0.0, until - time.monotonic())
    connection.set_query_timeout(int(left * 1000) + 1 if until is not None else 0)


def _execute_sorted(
    connection: LibraryConnection,
    text: str,
    parameters: Mapping[str, object],
    until: float | None,
) -> LibraryResult:
    """Execute a statement whose SKIP may exceed the number of sorted rows."""
    unsorted = first_row_unsorted(text)
    if unsorted is not None:
        result = _execute(connection, unsorted, parameters)
        if not result.get_num_tuples():
            return result
        result.close()
        _limit_time(connection, until)
    return _execute(connection, text, parameters)


def _plan(connection: LibraryConnection, parameters: Mapping[str, object], text: str) -> str:
    """The plan of a statement; empty for one that has none, such as an invalid one."""
    try:
        result = _execute(connection, f"EXPLAIN {text}", parameters)
    except CypherError:
        return ""
    plan: str = result.get_next()[0]
    result.close()
    return plan


@contextmanager
def _read_transaction(connection: LibraryConnection) -> Iterator[None]:
    """A read-only transaction, a second barrier after the guard; a failed statement has already
    ended it."""
    _execute(connection, "BEGIN TRANSACTION READ ONLY").close()
    try:
        yield
    finally:
        with suppress(CypherError):
            _execute(connection, "COMMIT").close()


class _CacheFull(MemoryError):
    """The engine's buffer pool is too small for the statement."""


def _as_error(message: str) -> Exception:
    if message.startswith("Interrupted"):
        return QueryInterrupted("The query was stopped.")
    if "Unable to cast Python instance" in message:
        return CypherError(
            "A parameter has a value that the engine cannot store.", hint="Integers have 64 bits."
        )
    if message.startswith("std::bad_alloc"):
        return MemoryError(message)
    if message.startswith("Buffer manager exception"):
        return _CacheFull(message)
    return CypherError(message)


def _discard_unsealed(folder: Path) -> None:
    """Restore an engine's folder to its sealed state by deleting the log of later writes."""
    for file in folder.iterdir():
        if file.name.startswith(f"{_FILE}."):
            file.unlink()
