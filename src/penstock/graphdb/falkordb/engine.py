"""The FalkorDB backend: a separate in-memory server.

Rows are loaded by thousands in one statement. The server enforces read-only queries and timeouts; a
running query can be cancelled only by killing the server.
"""

from __future__ import annotations

import math
import re
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from falkordb import FalkorDB, Node
from falkordb.query_result import QueryResult
from redis import ConnectionPool, UnixDomainSocketConnection
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

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
from penstock.graphdb.cypher.index_ranges import without_index_ranges
from penstock.graphdb.cypher.named_paths import with_named_paths
from penstock.graphdb.cypher.row_bounds import with_row_bounds
from penstock.graphdb.errors import (
    CypherError,
    GraphFailed,
    LoadRefused,
    QueryInterrupted,
    SchemaRefused,
)
from penstock.graphdb.falkordb.result import FalkorResult
from penstock.graphdb.falkordb.values import column, prefix
from penstock.graphdb.files import load_diagnosis
from penstock.graphdb.files.timestamp_units import cut_moments
from penstock.graphdb.typenames import quoted
from penstock.kit.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path as FilePath

    import numpy.typing as npt

    from penstock.graphdb.contract import Dangling
    from penstock.graphdb.falkordb.result import Answer, Row
    from penstock.graphdb.registry import Opening
    from penstock.kit.json_value import JsonValue

    Tuples: TypeAlias = list[tuple[object, ...]]
    """Rows as a parameter of a statement."""

CAPABILITIES = Capabilities(
    arrow=True,
    bulk_parquet=False,
    interrupt=False,
    networkx=True,
    native_algorithms=True,
    write_back=True,
    algorithm_mode="library",
    memory_model="memory",
)
ROWS_AT_ONCE = 5_000
BYTES_AT_ONCE = 8 * 1024 * 1024
"""A statement with its rows is copied several times in memory, in the client and the server."""
LONGEST_SECONDS = 3600.0
_SUPPORTED_TYPES = frozenset(
    "STRING INT64 INT32 INT16 INT8 DOUBLE FLOAT DATE TIMESTAMP BOOL BLOB UUID LIST".split()  # noqa: SIM905
)
_UNPARSED_TIMESTAMP = "1969-12-31T23:59:59"
_UNPARSED_AS_PARTS = {"year": 1969, "month": 12, "day": 31, "hour": 23, "minute": 59, "second": 59}
"""The second before 1970 is -1, which the server's parser of texts takes for an error."""
_CONVERSIONS = {
    "DATE": "date({})",
    "TIMESTAMP": "localdatetime({})",
    # NaN has no literal and comes as text.
    "DOUBLE": "toFloat({})",
    "FLOAT": "toFloat({})",
}
_TIMED_OUT = re.compile(r"^query timed out", re.IGNORECASE)
_NUMBERS = frozenset({"INT8", "INT16", "INT32", "INT64", "FLOAT", "DOUBLE"})
_EXACT_IN_DOUBLE = 2**53
_INDEXES = "CALL db.indexes() YIELD status RETURN status"
_PAUSE_SECONDS = 0.01
_OUT_OF_MEMORY = "mem consumption exceeded capacity"


def open_engine(opening: Opening) -> FalkorEngine:
    return FalkorEngine(opening)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeIds:
    """The server's internal ids of a label's nodes, by their keys as text."""

    keys: pa.Array
    ids: npt.NDArray[np.int64]

    def find(self, keys: pa.Array) -> list[int | None]:
        """The internal id for each key; None where there is no such node."""
        where = pc.index_in(load_diagnosis.texts(keys), value_set=self.keys)
        numbers: list[int | None] = pa.array(self.ids).take(where).to_pylist()
        return numbers


class FalkorEngine:
    capabilities = CAPABILITIES

    def __init__(self, opening: Opening) -> None:
        if opening.url is None:
            raise InvalidInput(
                "No FalkorDB server is configured.", hint="Set PENSTOCK_INSTANCE_FALKORDB_URL."
            )
        self.schema = opening.schema or GraphSchema(nodes=(), edges=())
        self._written: dict[str, dict[str, str]] = {}
        self._writing = threading.Lock()
        self._sources: dict[str, Sequence[FilePath]] = {}
        self._node_ids: dict[str, _NodeIds] = {}
        try:
            client = FalkorDB(connection_pool=_pool(opening.url))
            self._graph = client.select_graph(opening.name)
            if opening.schema is None and opening.name in client.list_graphs():
                self._graph.delete()
        except (RedisError, OSError) as e:
            raise GraphFailed(f"The FalkorDB server is unreachable: {e}") from e
        if opening.schema is not None and self._was_restored_from_file():
            self._rebuild_indexes()

    def create(self, schema: GraphSchema) -> None:
        for name, properties in [(t.label, t.columns) for t in schema.nodes] + [
            (t.type, t.properties) for t in schema.edges
        ]:
            if unsupported := [p for p in properties if p.type not in _SUPPORTED_TYPES]:
                raise SchemaRefused(
                    f"{name}.{unsupported[0].name} is {unsupported[0].type}, which FalkorDB does"
                    " not support.",
                    hint="Leave it out, or declare it STRING.",
                )
        self.schema = schema
        for table in schema.nodes:
            self._write(f"CREATE INDEX {_index(table)}")

    def seal(self) -> None:
        """Nothing to do: the graph lives in the server, as long as that runs."""

    def load(
        self,
        table: NodeTable | EdgeTable,
        files: Sequence[FilePath],
        *,
        dangling: Dangling = "fail",
    ) -> Loaded:
        if not files:
            return Loaded(rows=0)
        load_diagnosis.refuse_list_items(table, files)
        if isinstance(table, NodeTable):
            return self._load_nodes(table, files)
        return self._load_edges(table, files, dangling)

    def query(
        self,
        text: str,
        parameters: Mapping[str, JsonValue] | None = None,
        *,
        timeout: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> FalkorResult:
        interrupt = interrupt or Interrupt()
        until = time.monotonic() + (timeout or LONGEST_SECONDS)
        interrupt.check()
        with interrupt.stopping(lambda: None):
            text = with_row_bounds(text, parameters or {})
            text, added = with_named_paths(without_index_ranges(text, self._text_keys()))
            answer = self._read(text, parameters or {}, until)
        names = partial(self.names, until=until)
        return FalkorResult(
            answer, self._graph, self.name, names, check=interrupt.check, hidden=added
        )

    def key_of(self, table: NodeTable, value: str) -> str:
        return _converted(table.key, value)

    def counts(self) -> dict[str, int]:
        nodes = {
            t.label: self._one(f"MATCH (n:{quoted(t.label)}) RETURN count(n)")
            for t in self.schema.nodes
        }
        return nodes | {
            f"{t.type}:{t.from_node}:{t.to_node}": self._one(_edges(t) + "count(e)")
            for t in self.schema.edges
        }

    def node_table(self, label: str, properties: Sequence[str] = ()) -> pa.Table:
        rows = self._nodes_by_id(label, properties)
        columns = {OFFSET: pa.array(np.arange(len(rows)))}
        for i, name in enumerate((KEY, *properties), start=1):
            columns[name] = column([row[i] for row in rows])[1]
        return pa.table(columns)

    def edge_table(self, table: EdgeTable, properties: Sequence[str] = ()) -> pa.Table:
        returned = "".join(f", e.{quoted(name)}" for name in properties)
        rows = self._rows(f"{_edges(table)}id(a), id(b){returned}")
        ids = {
            label: np.array([row[0] for row in self._nodes_by_id(label)], np.int64)
            for label in _ends(table)
        }
        columns = {
            name: pa.array(
                np.searchsorted(ids[label], np.array([row[i] for row in rows], np.int64))
            )
            for i, (name, label) in enumerate(((SOURCE, table.from_node), (TARGET, table.to_node)))
        }
        return pa.table(
            columns
            | {n: column([row[i] for row in rows])[1] for i, n in enumerate(properties, start=2)}
        )

    def write_back(self, label: str, name: str, data: pa.Table) -> int:
        if any(p.name == name for p in self._node(label).columns):
            raise CypherError(
                f"{label}.{name} comes from the mapping and cannot be overwritten.",
                hint="Choose another name.",
            )
        with self._writing:
            self._write(f"MATCH (n:{quoted(label)}) SET n.{quoted(name)} = NULL")
            is_number = pa.types.is_floating(data.schema.field("value").type)
            value = _CONVERSIONS["DOUBLE"].format("r[1]") if is_number else "r[1]"
            statement = (
                "UNWIND $rows AS r WITH r, r[0] AS i MATCH (n) WHERE id(n) = i"
                f" SET n.{quoted(name)} = {value} RETURN count(n)"
            )
            node_ids = self._node_ids_of(label)
            written = sum(
                self._write(statement, rows=rows).result_set[0][0]
                for rows in _slices(data, node_ids)
            )
            self._written.setdefault(label, {})[name] = column(
                data.column("value").slice(0, 1000).to_pylist()
            )[0]
        return int(written)

    def written(self, label: str) -> dict[str, str]:
        return dict(self._written.get(label, {}))

    def close(self) -> None:
        """Delete the graph as well: the server may be shared, and nothing else would delete it."""
        with suppress(RedisError, OSError):
            self._graph.delete()
        self._graph.client.connection.close()

    def names(self, ids: Sequence[int], until: float) -> dict[int, str]:
        """`Label:key` of nodes by their internal ids."""
        if not ids:
            return {}
        text = "UNWIND $ids AS i MATCH (n) WHERE id(n) = i RETURN i, n"
        rows = QueryResult(self._graph, self._read(text, {"ids": list(ids)}, until)).result_set
        return {row[0]: self.name(row[1]) for row in rows}

    def _read(self, text: str, parameters: Mapping[str, object], until: float) -> Answer:
        """The server's raw response; raises `QueryInterrupted` for a query that timed out."""
        milliseconds = max(1, int((until - time.monotonic()) * 1000))
        command = ("GRAPH.RO_QUERY", self._graph.name, prefix(parameters) + text, "--compact")
        try:
            answer: Answer = self._graph.execute_command(*command, "timeout", milliseconds)
        except (ConnectionError, RedisConnectionError, BusyLoadingError) as e:
            raise Unavailable(f"The FalkorDB server is unreachable: {e}") from e
        except RedisError as e:
            raise _as_error(str(e)) from e
        return answer

    def name(self, node: Node) -> str:
        label = node.labels[0] if node.labels else ""
        table = self.schema.node(label)
        key = node.properties.get(table.key.name) if table else node.id
        return f"{label}:{key}"

    def _text_keys(self) -> frozenset[str]:
        """The names of keys whose index holds texts."""
        keys = (table.key for table in self.schema.nodes)
        return frozenset(key.name for key in keys if key.type not in _NUMBERS)

    def _nodes_by_id(self, label: str, properties: Sequence[str] = ()) -> list[Row]:
        key = self._node(label).key.name
        returned = "".join(f", n.{quoted(name)}" for name in properties)
        return self._rows(
            f"MATCH (n:{quoted(label)}) RETURN id(n) AS i, n.{quoted(key)}{returned} ORDER BY i"
        )

    def _load_nodes(self, table: NodeTable, files: Sequence[FilePath]) -> Loaded:
        keys = load_diagnosis.keys(table, files)
        if keys.null_count or len(keys.unique()) != len(keys):
            raise load_diagnosis.of_nodes(table, files, "")
        self._sources[table.label] = files
        if _has_padded_text(keys) or _has_wide_integers(keys):
            # The index misses a text that is empty or begins or ends with a space, and stores
            # integers as DOUBLEs.
            self._write(f"DROP INDEX {_index(table)}")
        properties = _properties(table.columns, pq.read_schema(files[0]).names)
        statement = (
            f"UNWIND $rows AS r CREATE (n:{quoted(table.label)} {{{properties}}}) RETURN id(n)"
        )
        ids = [
            row[0]
            for rows in _files(files, table.columns)
            for row in self._write(statement, rows=rows).result_set
        ]
        self._node_ids[table.label] = _NodeIds(
            keys=load_diagnosis.texts(keys), ids=np.array(ids, np.int64)
        )
        return Loaded(rows=len(ids))

    def _load_edges(
        self, table: EdgeTable, files: Sequence[FilePath], dangling: Dangling
    ) -> Loaded:
        """Match nodes by their internal ids, which is correct for every key and faster than an
        index."""
        names = pq.read_schema(files[0]).names
        total = sum(pq.read_metadata(file).num_rows for file in files)
        starts, ends = (self._node_ids_of(label) for label in _ends(table))
        if dangling == "fail":
            missing = load_diagnosis.missing_ends(table, files, starts.keys, ends.keys)
            if missing:
                raise load_diagnosis.of_edges(table, missing, "edges are missing")
        statement = (
            "UNWIND $rows AS r WITH r, r[0] AS s, r[1] AS t MATCH (a) WHERE id(a) = s"
            " WITH r, a, t MATCH (b) WHERE id(b) = t"
            f" CREATE (a)-[e:{quoted(table.type)}"
            f" {{{_properties(table.properties, names[2:], skip=2)}}}]->(b)"
        )
        rows = 0
        for batch in statement_batches(files):
            sources, targets = starts.find(batch.column(0)), ends.find(batch.column(1))
            columns = [sources, targets, *_declared(batch.select(names[2:]), table.properties)]
            whole = [
                row
                for row in zip(*columns, strict=True)
                if row[0] is not None and row[1] is not None
            ]
            rows += int(self._write(statement, rows=whole).relationships_created) if whole else 0
        return Loaded(rows=rows, dropped=total - rows)

    def _node_ids_of(self, label: str) -> _NodeIds:
        if label not in self._node_ids:
            rows = self._nodes_by_id(label)
            keys = load_diagnosis.texts(column([row[1] for row in rows])[1])
            self._node_ids[label] = _NodeIds(
                keys=keys, ids=np.array([row[0] for row in rows], np.int64)
            )
        return self._node_ids[label]

    def _was_restored_from_file(self) -> bool:
        """Whether the server itself, and not only its client, was restarted since the load."""
        state: dict[str, object] = self._graph.client.connection.info("persistence")
        return bool(state.get("rdb_last_load_keys_loaded", 1))

    def _rebuild_indexes(self) -> None:
        """FalkorDB 4.16 loses a node of an index that it reads from its file, and then misses it in
        a lookup by key."""
        indexed = {label for [label] in self._rows("CALL db.indexes() YIELD label RETURN label")}
        for table in (table for table in self.schema.nodes if table.label in indexed):
            self._write(f"DROP INDEX {_index(table)}")
            self._write(f"CREATE INDEX {_index(table)}")
        while any(status != "OPERATIONAL" for [status] in self._rows(_INDEXES)):
            time.sleep(_PAUSE_SECONDS)

    def _node(self, label: str) -> NodeTable:
        table = self.schema.node(label)
        if table is None:
            raise CypherError(f"There is no label {label[:80]!r}.")
        return table

    def _write(self, statement: str, **parameters: object) -> QueryResult:
        try:
            return self._graph.query(prefix(parameters) + statement, timeout=0)
        except RedisError as e:
            raise GraphFailed(f"FalkorDB rejected the statement: {e}") from e

    def _rows(self, statement: str, **parameters: object) -> list[Row]:
        answer = self._read(statement, parameters, time.monotonic() + LONGEST_SECONDS)
        rows: list[Row] = QueryResult(self._graph, answer).result_set
        return rows

    def _one(self, statement: str) -> int:
        return int(self._rows(statement)[0][0])


def _pool(url: str) -> ConnectionPool:
    """No retries in the client: they would repeat a query that crashed the server."""
    retry = Retry(NoBackoff(), 0)
    if url.startswith("unix://"):
        return ConnectionPool(
            UnixDomainSocketConnection,
            path=url.removeprefix("unix://"),
            decode_responses=True,
            retry=retry,
            socket_timeout=None,
        )
    return ConnectionPool.from_url(
        re.sub("^falkor", "redis", url), decode_responses=True, retry=retry, socket_timeout=None
    )


def _as_error(message: str) -> Exception:
    if _TIMED_OUT.search(message):
        return QueryInterrupted("The query was stopped.")
    return MemoryError(message) if _OUT_OF_MEMORY in message else CypherError(message)


def _index(table: NodeTable) -> str:
    return f"FOR (n:{quoted(table.label)}) ON (n.{quoted(table.key.name)})"


def _properties(properties: Sequence[Property], names: Sequence[str], *, skip: int = 0) -> str:
    by_name = {p.name: p for p in properties}
    if mismatched := sorted(set(names) ^ by_name.keys()):
        raise LoadRefused(f"The files and the definition differ in {', '.join(mismatched)}.")
    return ", ".join(
        f"{quoted(n)}: {_converted(by_name[n], f'r[{i}]')}" for i, n in enumerate(names, start=skip)
    )


def _converted(declared: Property, value: str) -> str:
    return _CONVERSIONS.get(declared.type, "{}").format(value)


def _edges(table: EdgeTable) -> str:
    start, end = map(quoted, _ends(table))
    return f"MATCH (a:{start})-[e:{quoted(table.type)}]->(b:{end}) RETURN "


def _ends(table: EdgeTable) -> tuple[str, str]:
    return table.from_node, table.to_node


def _files(files: Sequence[FilePath], columns: Sequence[Property]) -> Iterator[Tuples]:
    for batch in statement_batches(files):
        yield list(zip(*_declared(batch, columns), strict=True))


def _declared(batch: pa.RecordBatch, columns: Sequence[Property]) -> Iterator[list[object]]:
    """A batch's columns as the server accepts them; a UUID is text, whatever its source type."""
    uuids = {column.name for column in columns if column.type == "UUID"}
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        yield _plain(load_diagnosis.texts(values) if name in uuids else values)


def statement_batches(files: Sequence[FilePath]) -> Iterator[pa.RecordBatch]:
    """Batches for one statement each: the server closes the connection on one of 512 MB."""
    for file in files:
        with pq.ParquetFile(file) as source:
            for batch in source.iter_batches(ROWS_AT_ONCE):
                yield from _halved(batch)


def _halved(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= BYTES_AT_ONCE or batch.num_rows == 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _halved(batch.slice(0, half))
    yield from _halved(batch.slice(half))


def _has_wide_integers(keys: pa.Array) -> bool:
    """Whether there are integers that a DOUBLE does not represent exactly."""
    if not pa.types.is_integer(keys.type) or not len(keys):
        return False
    ends = pc.min_max(keys).as_py()
    return bool(ends["max"] >= _EXACT_IN_DOUBLE or ends["min"] <= -_EXACT_IN_DOUBLE)


def _has_padded_text(keys: pa.Array) -> bool:
    if not pa.types.is_string(keys.type) and not pa.types.is_large_string(keys.type):
        return False
    trimmed = pc.utf8_trim_whitespace(keys)
    return bool(pc.any(pc.or_(pc.not_equal(trimmed, keys), pc.equal(keys, ""))).as_py())


def _plain(values: pa.Array) -> list[object]:
    """The values as a list; timestamps in UTC without a zone, in the server's unit of seconds."""
    if pa.types.is_timestamp(values.type):
        texts = pc.strftime(cut_moments(values, "s"), "%Y-%m-%dT%H:%M:%S").to_pylist()
        return [_UNPARSED_AS_PARTS if text == _UNPARSED_TIMESTAMP else text for text in texts]
    items: list[object] = values.to_pylist()
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        return [
            "nan" if isinstance(value, float) and math.isnan(value) else value for value in items
        ]
    return items


def _slices(data: pa.Table, node_ids: _NodeIds) -> Iterator[Tuples]:
    """Internal ids of nodes with their values; a key without a node is left out."""
    for batch in data.select(["key", "value"]).to_batches(ROWS_AT_ONCE):
        rows = zip(node_ids.find(batch.column(0)), _plain(batch.column(1)), strict=True)
        yield [row for row in rows if row[0] is not None]
