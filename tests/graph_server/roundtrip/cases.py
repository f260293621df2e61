"""One case: a generated graph, written by the snapshot's writer, loaded and served by a graph
server, read by queries, and compared value by value with the tables that it was made of."""

from __future__ import annotations

import base64
import datetime as dt
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import pyarrow as pa
from pyarrow import types

from penstock.storage.object_store import open_store
from penstock.storage.parquet_sink import SinkLimits
from penstock.storage.row_groups import GroupLimits
from tests.graph_server.roundtrip.columns import (
    INT64,
    KEYS,
    KINDS,
    NULLS,
    SHAPES,
    TICKS,
    Column,
    Kind,
    array,
    column,
)
from tests.graph_server.server import ARROW, GraphServer, graph_server
from tests.graph_server.snapshots import Edge, Node, publish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Values: TypeAlias = "list[Any]"
FEW = (0, 1)
MANY = (2047, 2048, 2049)
MORE_THAN_A_PAGE = 21_000
EDGE_COLUMNS = 6
MOST_DIFFERENCES = 20
_LOOKUPS = 10
_KEY = "k"
_NUMBER = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A label or an edge type, with the columns of the source; the key, or the edge's number, comes
    first."""

    name: str
    columns: tuple[Column, ...]
    ends: tuple[Table, Table] | None = None
    keys: tuple[pa.Array, pa.Array] | None = None
    """Of an edge, those of its start and its end."""

    @property
    def query(self) -> str:
        variable = "n" if self.ends is None else "e"
        items = [f"{variable}.{c.name} AS {c.name}" for c in self.columns]
        if self.ends is None:
            return f"MATCH (n:{self.name}) RETURN {', '.join(items)}"
        start, end = self.ends
        pattern = f"(a:{start.name})-[e:{self.name}]->(b:{end.name})"
        return f"MATCH {pattern} RETURN {', '.join(items)}, a.{_KEY} AS source, b.{_KEY} AS target"

    @property
    def expected(self) -> list[tuple[str, Kind, pa.Array]]:
        """What the query's columns must hold, in their order."""
        own = [(str(c), c.kind, c.values) for c in self.columns]
        if self.ends is None or self.keys is None:
            return own
        kinds = [end.columns[0].kind for end in self.ends]
        return own + [
            (name, kind, keys)
            for name, kind, keys in zip(("start", "end"), kinds, self.keys, strict=True)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    seed: int
    backend: str
    nodes: tuple[Table, ...]
    edges: tuple[Table, ...]
    limits: SinkLimits
    batch_rows: int

    @property
    def replay(self) -> str:
        return f"seed {self.seed} on {self.backend} (make fuzz NAME=snapshots N=1 SEED={self.seed})"


def make(seed: int, backend: str) -> Case:
    """Every kind of column in a label of many rows, and again in labels of none and of one; some of
    them in edges."""
    random = Random(f"{seed}-{backend}")
    kinds = list(KINDS[backend])
    random.shuffle(kinds)
    share = -(-len(kinds) // len(KEYS))
    large = [
        _node(
            random,
            f"L{number}",
            key,
            random.choice(MANY),
            kinds[number * share : (number + 1) * share],
        )
        for number, key in enumerate(KEYS)
    ]
    longest = _node(random, "P", INT64, MORE_THAN_A_PAGE, [INT64])
    small = [_node(random, f"S{rows}", random.choice(KEYS), rows, kinds) for rows in FEW]
    pairs = [
        (random.choice(large), random.choice(large)),
        (large[0], large[1]),
        (small[0], large[2]),
    ]
    return Case(
        seed=seed,
        backend=backend,
        nodes=(*large, longest, *small),
        edges=tuple(
            _edge(random, f"E{number}", ends, random.sample(kinds, EDGE_COLUMNS))
            for number, ends in enumerate(pairs)
        ),
        limits=SinkLimits(
            group=GroupLimits(rows=random.choice((300, 777, 2048, 262_144))),
            file_bytes=random.choice((1, 200_000, 512_000_000)),
        ),
        batch_rows=random.choice((64, 1000, 100_000)),
    )


def _node(random: Random, label: str, key: Kind, rows: int, kinds: Sequence[Kind]) -> Table:
    values = _keys(random, key, rows)
    own = Column(name=_KEY, kind=key, shape="any", nulls="none", values=array(values, key.arrow))
    return Table(name=label, columns=(own, *_columns(random, kinds, rows)))


def _keys(random: Random, kind: Kind, rows: int) -> Values:
    """Different ones: those at the bounds, numbered ones and random ones, which are hashes to an
    engine."""
    assert kind.unique is not None
    values = dict.fromkeys(kind.bounds)
    number = 0
    while len(values) < rows:
        values[kind.unique(random, number) if random.random() < 0.5 else kind.draw(random)] = None
        number += 1
    chosen = list(values)[:rows]
    random.shuffle(chosen)
    return chosen


def _edge(random: Random, name: str, ends: tuple[Table, Table], kinds: Sequence[Kind]) -> Table:
    starts, stops = (end.columns[0].values for end in ends)
    rows = random.choice(MANY) if len(starts) and len(stops) else 0
    chosen = [
        pa.array([random.randrange(len(keys)) for _ in range(rows)], pa.int64())
        for keys in (starts, stops)
    ]
    number = Column(
        name=_NUMBER,
        kind=INT64,
        shape="ascending",
        nulls="none",
        values=pa.array(range(rows), pa.int64()),
    )
    return Table(
        name=name,
        columns=(number, *_columns(random, kinds, rows)),
        ends=ends,
        keys=(starts.take(chosen[0]), stops.take(chosen[1])),
    )


def _columns(random: Random, kinds: Sequence[Kind], rows: int) -> Iterator[Column]:
    shapes, nullness = random.sample(SHAPES, len(SHAPES)), random.sample(NULLS, len(NULLS))
    for number, kind in enumerate(kinds):
        shape, nulls = shapes[number % len(shapes)], nullness[number % len(nullness)]
        yield column(random, f"c{number}", kind, rows, shape=shape, nulls=nulls)


# a run


async def run(case: Case, *, delta_packed: bool = False) -> list[str]:
    """What differs, a line a column; at most `MOST_DIFFERENCES`. `delta_packed`: files as older
    versions wrote them."""
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder = Path(name)
        root = folder / "storage"
        root.mkdir()
        assignment = await publish(
            open_store(str(root)),
            [_as_node(table) for table in case.nodes],
            [_as_edge(table) for table in case.edges],
            prefix="ada/5/v3/42/",
            limits=case.limits,
            batch_rows=case.batch_rows,
            delta_packed=delta_packed,
        )
        assignment["wrapper_type"] = case.backend
        async with graph_server(
            folder / "i", f"file://{root}", assignment, instance_backend=case.backend
        ) as server:
            outcome = await server.plane.outcome()
            if outcome["status"] != "running":
                return [f"not loaded: {outcome}"]
            return (await _compared(case, server))[:MOST_DIFFERENCES]


async def _compared(case: Case, server: GraphServer) -> list[str]:
    wrong: list[str] = []
    for table in (*case.nodes, *case.edges):
        wrong += await _compared_table(case, server, table)
    for table in case.nodes:
        wrong += await _lookups(case, server, table)
    return wrong


async def _compared_table(case: Case, server: GraphServer, table: Table) -> list[str]:
    answer = await server.http.post(
        "/query", json={"query": table.query}, headers={"Accept": ARROW}
    )
    if answer.status_code != 200:
        return [f"{table.name} in Arrow: {answer.status_code} {answer.text[:500]}"]
    stream = pa.ipc.open_stream(answer.content).read_all()
    by_arrow = [python_values(values, comparable) for values in stream.columns]
    reply = await server.query(table.query)
    if reply.status_code != 200:
        return [f"{table.name} in JSON: {reply.status_code} {reply.text[:500]}"]
    rows = reply.json()["rows"]
    by_json = (
        [list(values) for values in zip(*rows, strict=True)]
        if rows
        else [[] for _ in table.expected]
    )
    return [
        f"{form}, {line}"
        for form, shown, columns in (("Arrow", comparable, by_arrow), ("JSON", as_json, by_json))
        for line in _differences(case, table, shown, columns)
    ]


def _differences(
    case: Case, table: Table, shown: Callable[[Any, pa.DataType], Any], answered: Sequence[Values]
) -> Iterator[str]:
    expected_values = [
        python_values(expected(values, kind, case.backend), shown)
        for _, kind, values in table.expected
    ]
    places = {key: place for place, key in enumerate(answered[0])}
    if len(answered[0]) != len(expected_values[0]) or len(places) != len(expected_values[0]):
        yield (
            f"{table.name}: {len(answered[0])} rows with {len(places)} keys instead of "
            f"{len(expected_values[0])}"
        )
        return
    if lost := [key for key in expected_values[0] if key not in places]:
        yield f"{table.name}: {len(lost)} keys are not there, the first is {lost[0]!r:.200}"
        return
    for (name, _, _), right, values in zip(table.expected, expected_values, answered, strict=True):
        wrong = [n for n, key in enumerate(expected_values[0]) if values[places[key]] != right[n]]
        if wrong:
            key = expected_values[0][wrong[0]]
            yield (
                f"{table.name}.{name}: {len(wrong)} of {len(right)} are wrong, the first is row "
                f"{wrong[0]}: {right[wrong[0]]!r:.200} was answered as "
                f"{values[places[key]]!r:.200}"
            )


async def _lookups(case: Case, server: GraphServer, table: Table) -> list[str]:
    """By the key's index."""
    key = table.columns[0]
    if key.kind.declared not in ("INT64", "STRING"):
        return []
    wrong = []
    for value in key.values.to_pylist()[:_LOOKUPS]:
        text = f"MATCH (n:{table.name} {{{_KEY}: $key}}) RETURN n.{_KEY}"
        answer = await server.query(text, parameters={"key": value})
        rows = answer.json().get("rows")
        if rows != [[value]]:
            wrong.append(
                f"{table.name} by its key {value!r:.200}: {answer.status_code} {rows!r:.200}"
            )
    return wrong


def _as_node(table: Table) -> Node:
    key, *others = table.columns
    return Node(
        label=table.name,
        key=(key.name, key.kind.declared),
        properties=tuple((c.name, c.kind.declared) for c in others),
        table=pa.table({c.name: c.values for c in table.columns}),
    )


def _as_edge(table: Table) -> Edge:
    assert table.ends is not None
    assert table.keys is not None
    columns = {"source": table.keys[0], "target": table.keys[1]} | {
        c.name: c.values for c in table.columns
    }
    return Edge(
        type=table.name,
        ends=(table.ends[0].name, table.ends[1].name),
        properties=tuple((c.name, c.kind.declared) for c in table.columns),
        table=pa.table(columns),
    )


# values


def expected(values: pa.Array, kind: Kind, backend: str) -> pa.Array:
    """The source's values in the types of an answer, with what the guide says that an engine does
    not keep left out."""
    if kind.declared == "UUID":
        return _uuid_texts(values)
    if backend == "falkordb":
        return _as_falkordb_holds(values)
    if types.is_timestamp(values.type):
        return _cut(values, TICKS["us"])
    return values


def _cut(values: pa.Array, precision: int) -> pa.Array:
    """Moments in UTC, down to so many parts of a second."""
    ticks = TICKS[values.type.unit]
    numbers = values.cast(pa.int64()).to_pylist()
    cut = [
        None if number is None else number * precision // ticks * (TICKS["us"] // precision)
        for number in numbers
    ]
    return pa.array(cut, pa.timestamp("us"))


def _uuid_texts(values: pa.Array) -> pa.Array:
    raw = values.storage if isinstance(values.type, pa.BaseExtensionType) else values
    return pa.array(
        [
            None if v is None else v if isinstance(v, str) else str(UUID(bytes=v))
            for v in raw.to_pylist()
        ],
        pa.string(),
    )


def _as_falkordb_holds(values: pa.Array) -> pa.Array:
    kind = values.type
    if types.is_timestamp(kind):
        return _cut(values, 1)
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.array(
            [
                None if value is None else base64.b64encode(value).decode()
                for value in values.to_pylist()
            ],
            pa.string(),
        )
    if types.is_floating(kind):
        return pa.array(
            [None if value is None else float(f"{value:.15g}") for value in values.to_pylist()]
        )
    if types.is_nested(kind) and types.is_floating(getattr(kind, "value_type", pa.null())):
        rounded = [
            None
            if items is None
            else [None if item is None else float(f"{item:.15g}") for item in items]
            for items in values.to_pylist()
        ]
        return pa.array(rounded, pa.list_(pa.float64()))
    return values


def comparable(value: Any, _: pa.DataType) -> Any:
    """With a zero's sign, and with a NaN that equals itself."""
    match value:
        case float():
            return repr(value)
        case list() | tuple():
            return [comparable(item, _) for item in value]
        case dict():
            return {name: comparable(item, _) for name, item in value.items()}
    return value


def as_json(value: Any, kind: pa.DataType) -> Any:
    """As the guide says that an answer in JSON shows it."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case bytes():
            return base64.b64encode(value).decode()
        case dt.datetime():
            return f"{value.isoformat()}Z"
        case dt.date():
            return value.isoformat()
        case dict():
            return {field.name: as_json(value[field.name], field.type) for field in kind}
        case list() if types.is_map(kind):
            return {str(key): as_json(item, kind.item_type) for key, item in value}
        case list():
            return [as_json(item, kind.value_type) for item in value]
    return value


def python_values(
    values: pa.Array | pa.ChunkedArray, shown: Callable[[Any, pa.DataType], Any]
) -> Values:
    return [shown(value, values.type) for value in values.to_pylist()]
