"""FalkorDB: a server of its own, in memory. Rows go in by thousands in one statement; a query is read-only by the
server's own word and ends by its clock, for nothing can stop one from outside."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from falkordb import FalkorDB, Node
from redis.exceptions import RedisError

from penstock.graphdb import diagnosis
from penstock.graphdb.contract import Capabilities, EdgeTable, GraphSchema, Interrupt, Loaded, NodeTable, Property
from penstock.graphdb.errors import CypherError, GraphFailed, LoadRefused, QueryInterrupted, SchemaRefused
from penstock.graphdb.falkor_result import FalkorResult
from penstock.graphdb.falkor_values import column, prefix
from penstock.graphdb.typenames import quoted
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path as FilePath

    from penstock.graphdb.contract import Dangling, JsonValue
    from penstock.graphdb.registry import Opening

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
GRAPH = "penstock"
ROWS_AT_ONCE = 5_000
LONGEST_SECONDS = 3600.0
_HELD = frozenset("STRING INT64 INT32 INT16 INT8 DOUBLE FLOAT DATE TIMESTAMP BOOL BLOB UUID LIST".split())  # noqa: SIM905
_MADE = {"DATE": "date({})", "TIMESTAMP": "localdatetime({})"}
_TIMED_OUT = re.compile(r"timed out|timeout", re.IGNORECASE)


def open_engine(opening: Opening) -> FalkorEngine:
    if opening.url is None:
        raise InvalidInput("A FalkorDB server is needed.", hint="Set PENSTOCK_INSTANCE_FALKORDB_URL.")
    return FalkorEngine(opening.url)


class FalkorEngine:
    capabilities = CAPABILITIES

    def __init__(self, url: str) -> None:
        self.schema = GraphSchema(nodes=(), edges=())
        self._written: dict[str, dict[str, str]] = {}
        self._writing = threading.Lock()
        self._sources: dict[str, Sequence[FilePath]] = {}
        try:
            client = FalkorDB(unix_socket_path=url.removeprefix("unix://")) if url.startswith("unix://") else _at(url)
            self._graph = client.select_graph(GRAPH)
            if GRAPH in client.list_graphs():
                self._graph.delete()
        except (RedisError, OSError) as e:
            raise GraphFailed(f"The FalkorDB server does not answer: {e}") from e

    def create(self, schema: GraphSchema) -> None:
        for name, held in [(t.label, t.columns) for t in schema.nodes] + [(t.type, t.properties) for t in schema.edges]:
            if strange := [p for p in held if p.type not in _HELD]:
                raise SchemaRefused(
                    f"{name}.{strange[0].name} is {strange[0].type}, which FalkorDB does not hold.",
                    hint="Leave it out, or make it a STRING.",
                )
        self.schema = schema
        for table in schema.nodes:
            self._write(f"CREATE INDEX FOR (n:{quoted(table.label)}) ON (n.{quoted(table.key.name)})")

    def load(self, table: NodeTable | EdgeTable, files: Sequence[FilePath], *, dangling: Dangling = "fail") -> Loaded:
        if not files:
            return Loaded(rows=0)
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
        if interrupt is not None and interrupt.pulled:
            raise QueryInterrupted("The query was stopped before it began.")
        milliseconds = int((timeout or LONGEST_SECONDS) * 1000) + 1
        try:
            found = self._graph.ro_query(prefix(parameters or {}) + text, timeout=milliseconds)
        except RedisError as e:
            if _TIMED_OUT.search(str(e)):
                raise QueryInterrupted("The query was stopped.") from e
            raise CypherError(str(e)) from e
        return FalkorResult(found, self.name, self.names)

    def key_of(self, table: NodeTable, value: str) -> str:
        return _made(table.key, value)

    def counts(self) -> dict[str, int]:
        nodes = {t.label: self._one(f"MATCH (n:{quoted(t.label)}) RETURN count(n)") for t in self.schema.nodes}
        return nodes | {
            f"{t.type}:{t.from_node}:{t.to_node}": self._one(_edges(t) + "count(e)") for t in self.schema.edges
        }

    def node_table(self, label: str, properties: Sequence[str] = ()) -> pa.Table:
        rows = self._nodes_by_id(label, properties)
        columns = {"offset": pa.array(np.arange(len(rows)))}
        for i, name in enumerate(("key", *properties), start=1):
            columns[name] = column([row[i] for row in rows])[1]
        return pa.table(columns)

    def edge_table(self, table: EdgeTable, properties: Sequence[str] = ()) -> pa.Table:
        wanted = "".join(f", e.{quoted(name)}" for name in properties)
        rows = self._rows(f"{_edges(table)}id(a), id(b){wanted}")
        ids = {label: np.array([row[0] for row in self._nodes_by_id(label)], np.int64) for label in _ends(table)}
        columns = {
            name: pa.array(np.searchsorted(ids[label], np.array([row[i] for row in rows], np.int64)))
            for i, (name, label) in enumerate((("src", table.from_node), ("dst", table.to_node)))
        }
        return pa.table(columns | {n: column([row[i] for row in rows])[1] for i, n in enumerate(properties, start=2)})

    def write_back(self, label: str, name: str, data: pa.Table) -> int:
        table = self._node(label)
        if any(p.name == name for p in table.columns):
            raise CypherError(
                f"{label}.{name} comes from the mapping; it is never overwritten.", hint="Choose another name."
            )
        with self._writing:
            self._write(f"MATCH (n:{quoted(label)}) SET n.{quoted(name)} = NULL")
            statement = (
                f"UNWIND $rows AS r MATCH (n:{quoted(label)} {{{quoted(table.key.name)}: {_made(table.key, 'r[0]')}}})"
                f" SET n.{quoted(name)} = r[1] RETURN count(n)"
            )
            written = sum(self._write(statement, rows=rows).result_set[0][0] for rows in _slices(data))
            self._written.setdefault(label, {})[name] = column(data.column("value").slice(0, 1000).to_pylist())[0]
        return int(written)

    def written(self, label: str) -> dict[str, str]:
        return dict(self._written.get(label, {}))

    def close(self) -> None:
        self._graph.client.connection.close()

    def names(self, ids: Sequence[int]) -> dict[int, str]:
        """`Label:key` of nodes that the server only gave the numbers of."""
        rows = self._rows("UNWIND $ids AS i MATCH (n) WHERE id(n) = i RETURN i, n", ids=list(ids)) if ids else []
        return {row[0]: self.name(row[1]) for row in rows}

    def name(self, node: Node) -> str:
        label = node.labels[0] if node.labels else ""
        table = self.schema.node(label)
        key = node.properties.get(table.key.name) if table else node.id
        return f"{label}:{key}"

    def _nodes_by_id(self, label: str, properties: Sequence[str] = ()) -> list[list[Any]]:
        key = self._node(label).key.name
        wanted = "".join(f", n.{quoted(name)}" for name in properties)
        return self._rows(f"MATCH (n:{quoted(label)}) RETURN id(n) AS i, n.{quoted(key)}{wanted} ORDER BY i")

    def _load_nodes(self, table: NodeTable, files: Sequence[FilePath]) -> Loaded:
        keys = diagnosis.keys(table, files)
        if keys.null_count or len(keys.unique()) != len(keys):
            raise diagnosis.of_nodes(table, files, "")
        self._sources[table.label] = files
        properties = _properties(table.columns, pq.read_schema(files[0]).names)
        statement = f"UNWIND $rows AS r CREATE (n:{quoted(table.label)} {{{properties}}})"
        rows = sum(self._write(statement, rows=rows).nodes_created for rows in _files(files))
        return Loaded(rows=int(rows))

    def _load_edges(self, table: EdgeTable, files: Sequence[FilePath], dangling: Dangling) -> Loaded:
        names = pq.read_schema(files[0]).names
        total = sum(pq.read_metadata(file).num_rows for file in files)
        start, end = (self._node(label).key for label in _ends(table))
        statement = (
            f"UNWIND $rows AS r MATCH (a:{quoted(table.from_node)} {{{quoted(start.name)}: {_made(start, 'r[0]')}}}),"
            f" (b:{quoted(table.to_node)} {{{quoted(end.name)}: {_made(end, 'r[1]')}}})"
            f" CREATE (a)-[e:{quoted(table.type)} {{{_properties(table.properties, names[2:], skip=2)}}}]->(b)"
        )
        rows = int(sum(self._write(statement, rows=rows).relationships_created for rows in _files(files)))
        if rows != total and dangling == "fail":
            starts, ends = (diagnosis.keys(self._node(label), self._sources.get(label, ())) for label in _ends(table))
            raise diagnosis.of_edges(table, diagnosis.missing_ends(table, files, starts, ends), "edges are missing")
        return Loaded(rows=rows, dropped=total - rows)

    def _node(self, label: str) -> NodeTable:
        table = self.schema.node(label)
        if table is None:
            raise CypherError(f"There is no label {label[:80]!r}.")
        return table

    def _write(self, statement: str, **parameters: object) -> Any:
        try:
            return self._graph.query(prefix(parameters) + statement, timeout=0)
        except RedisError as e:
            raise GraphFailed(f"FalkorDB refused: {e}") from e

    def _rows(self, statement: str, **parameters: object) -> list[list[Any]]:
        found: list[list[Any]] = self._graph.ro_query(prefix(parameters) + statement, timeout=0).result_set
        return found

    def _one(self, statement: str) -> int:
        return int(self._rows(statement)[0][0])


def _at(url: str) -> FalkorDB:
    return FalkorDB.from_url(url)


def _properties(known: Sequence[Property], names: Sequence[str], *, skip: int = 0) -> str:
    by_name = {p.name: p for p in known}
    if strange := sorted(set(names) ^ by_name.keys()):
        raise LoadRefused(f"The files and the definition differ in {', '.join(strange)}.")
    return ", ".join(f"{quoted(n)}: {_made(by_name[n], f'r[{i}]')}" for i, n in enumerate(names, start=skip))


def _made(held: Property, value: str) -> str:
    return _MADE.get(held.type, "{}").format(value)


def _edges(table: EdgeTable) -> str:
    start, end = map(quoted, _ends(table))
    return f"MATCH (a:{start})-[e:{quoted(table.type)}]->(b:{end}) RETURN "


def _ends(table: EdgeTable) -> tuple[str, str]:
    return table.from_node, table.to_node


def _files(files: Sequence[FilePath]) -> Iterator[list[tuple[Any, ...]]]:
    for file in files:
        with pq.ParquetFile(file) as source:
            for batch in source.iter_batches(ROWS_AT_ONCE):
                yield list(zip(*(_plain(values) for values in batch.columns), strict=True))


def _plain(values: pa.Array) -> list[Any]:
    """Moments without their zone, in UTC: the server keeps seconds."""
    if pa.types.is_timestamp(values.type):
        return list(pc.strftime(values.cast(pa.timestamp("s"), safe=False), "%Y-%m-%dT%H:%M:%S").to_pylist())
    found: list[Any] = values.to_pylist()
    return found


def _slices(data: pa.Table) -> Iterator[list[tuple[Any, ...]]]:
    for batch in data.select(["key", "value"]).to_batches(ROWS_AT_ONCE):
        yield list(zip(*(_plain(values) for values in batch.columns), strict=True))
