"""Random property graphs with several labels and edge types, all property types and edge cases."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.graphdb.contract import EdgeTable, GraphSchema, NodeTable, Property

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from random import Random

    from tests.graphdb.oracle.syntax import Kind

ARROW: Mapping[str, pa.DataType] = {
    "INT64": pa.int64(),
    "INT32": pa.int32(),
    "INT16": pa.int16(),
    "INT8": pa.int8(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "STRING": pa.string(),
    "BOOL": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "UUID": pa.string(),
    "BLOB": pa.binary(),
}
KINDS: Mapping[str, Kind] = {
    "INT64": "INT",
    "INT32": "NARROW",
    "INT16": "NARROW",
    "INT8": "NARROW",
    "DOUBLE": "FLOAT",
    "FLOAT": "FLOAT",
    "STRING": "STR",
    "BOOL": "BOOL",
    "DATE": "DATE",
    "TIMESTAMP": "MOMENT",
}
INTS = (0, 1, -1, 2, 3, 7, -7, 10, 100, 2**31, -(2**31))
WIDE_INTS = (*INTS, 2**53 + 1, -(2**53) - 3)
SMALL_INTS = (0, 1, -1, 2, 5, -100, 127)
FLOATS = (0.0, 1.0, -1.5, 0.25, 2.5, -2.5, 100.0, 1e10, 0.1)
ODD_FLOATS = (float("nan"), float("inf"), float("-inf"), 1e300)
STRINGS = (
    "",
    "a",
    "A",
    "ab",
    "b",
    "Zoë",
    "Żółw",
    "🐞",
    "it's",
    'say "x"',
    "back\\slash",
    " pad ",
    "null",
    "é",
    "10",
)
DAYS = (dt.date(1970, 1, 1), dt.date(2000, 2, 29), dt.date(2026, 11, 16))
WIDE_DAYS = (*DAYS, dt.date(1815, 12, 10), dt.date(9999, 12, 31))
MOMENTS = (
    dt.datetime(1970, 1, 1),  # noqa: DTZ001 - a TIMESTAMP has no zone
    dt.datetime(2001, 9, 9, 1, 46, 40),  # noqa: DTZ001
    dt.datetime(2026, 11, 16, 12, 30, 59),  # noqa: DTZ001
)
NULL_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a graph has that engines differ on; without it, they are held to openCypher there."""

    nan: bool = False
    """NaN and the infinities among its DOUBLEs."""
    wide: bool = False
    """Integers beyond 2⁵³, and dates more than 68 years apart."""
    nulls: bool = True
    tangled: bool = True
    """Parallel relationships, loops and cycles."""

    @property
    def ints(self) -> tuple[int, ...]:
        return WIDE_INTS if self.wide else INTS

    @property
    def days(self) -> tuple[dt.date, ...]:
        return WIDE_DAYS if self.wide else DAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The same graph twice: as tables for the engines, and as NetworkX for the reference."""

    traits: Traits
    schema: GraphSchema
    tables: Mapping[str, pa.Table]
    """By `Label`, and by `TYPE:From:To`."""
    nodes: nx.MultiDiGraph

    def files(self, folder: Path) -> dict[str, Path]:
        paths = {}
        for number, (name, table) in enumerate(self.tables.items()):
            paths[name] = folder / f"{number}.parquet"
            pq.write_table(table, paths[name])
        return paths


def make(random: Random, traits: Traits) -> Graph:
    nodes = (
        NodeTable(label="A", key=_key("id", "INT64"), properties=_properties("i f s b d t l m")),
        NodeTable(label="B", key=_key("id", "INT64"), properties=_properties("i f s k")),
        NodeTable(label="C", key=_key("name", "STRING"), properties=_properties("i s x u z")),
    )
    edges = (
        EdgeTable(type="LOVES", from_node="A", to_node="A", properties=_properties("w n")),
        EdgeTable(type="HAS", from_node="A", to_node="B", properties=_properties("w g")),
        EdgeTable(type="ABOUT", from_node="A", to_node="C"),
        EdgeTable(type="ABOUT", from_node="B", to_node="C"),
    )
    graph = nx.MultiDiGraph()
    tables: dict[str, pa.Table] = {}
    for table in nodes:
        tables[table.label] = _fill_nodes(random, graph, table, traits)
    for edge in edges:
        tables[f"{edge.type}:{edge.from_node}:{edge.to_node}"] = _fill_edges(
            random, graph, edge, traits
        )
    return Graph(
        traits=traits, schema=GraphSchema(nodes=nodes, edges=edges), tables=tables, nodes=graph
    )


_TYPES = {
    "i": "INT64",
    "f": "DOUBLE",
    "s": "STRING",
    "b": "BOOL",
    "d": "DATE",
    "t": "TIMESTAMP",
    "k": "INT32",
    "m": "INT8",
    "x": "INT16",
    "g": "FLOAT",
    "w": "INT64",
    "n": "STRING",
    "u": "UUID",
    "z": "BLOB",
}


def _key(name: str, kind: str) -> Property:
    return Property(name=name, type=kind)


def _properties(names: str) -> tuple[Property, ...]:
    return tuple(
        Property(name=name, type="LIST", arrow=pa.list_(pa.int64()))
        if name == "l"
        else Property(name=name, type=_TYPES[name])
        for name in names.split()
    )


def _fill_nodes(
    random: Random, graph: nx.MultiDiGraph, table: NodeTable, traits: Traits
) -> pa.Table:
    count = random.choice((0, 1, 3, 5, 6, 7))
    keys: list[Any] = random.sample(range(-3, 20), count)
    if table.key.type == "STRING":
        keys = random.sample(STRINGS, count)
    columns = {table.key.name: keys} | {
        p.name: [_value(random, p, traits) for _ in range(count)] for p in table.properties
    }
    for i, key in enumerate(keys):
        properties = {name: values[i] for name, values in columns.items()}
        graph.add_node(f"{table.label}:{key}", label=table.label, properties=properties)
    arrays = {p.name: pa.array(columns[p.name], _arrow(p)) for p in table.columns}
    return pa.table(arrays)


def _fill_edges(
    random: Random, graph: nx.MultiDiGraph, table: EdgeTable, traits: Traits
) -> pa.Table:
    starts, ends = (
        [
            (name, data["properties"])
            for name, data in graph.nodes(data=True)
            if data["label"] == label
        ]
        for label in (table.from_node, table.to_node)
    )
    count = random.choice((0, 2, 5, 8)) if starts and ends else 0
    chosen = [(random.choice(starts), random.choice(ends)) for _ in range(count)]
    if not traits.tangled:
        chosen = _untangled(chosen)
    elif chosen:
        chosen.append(chosen[0])
        if table.from_node == table.to_node:
            chosen.append((starts[0], starts[0]))
    columns = {p.name: [_value(random, p, traits) for _ in chosen] for p in table.properties}
    for i, ((start, _), (end, _)) in enumerate(chosen):
        properties = {name: values[i] for name, values in columns.items()}
        graph.add_edge(
            start, end, type=table.type, number=graph.number_of_edges(), properties=properties
        )
    key_names = {"A": "id", "B": "id", "C": "name"}
    kinds = {"A": pa.int64(), "B": pa.int64(), "C": pa.string()}
    arrays = {
        "_from": pa.array(
            [s[key_names[table.from_node]] for (_, s), _ in chosen], kinds[table.from_node]
        ),
        "_to": pa.array(
            [e[key_names[table.to_node]] for _, (_, e) in chosen], kinds[table.to_node]
        ),
    }
    return pa.table(
        arrays | {p.name: pa.array(columns[p.name], _arrow(p)) for p in table.properties}
    )


def _untangled(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """One relationship a pair, from a lesser name to a greater."""
    once = {(start[0], end[0]): (start, end) for start, end in pairs}
    return [pair for (start, end), pair in once.items() if start < end]


def _arrow(column: Property) -> pa.DataType:
    return column.arrow if column.arrow is not None else ARROW[column.type]


_CHOICES: Mapping[str, Sequence[Any]] = {
    "INT32": SMALL_INTS,
    "INT16": SMALL_INTS,
    "INT8": SMALL_INTS,
    "FLOAT": (0.0, 0.5, -2.25, 1024.0),
    "STRING": STRINGS,
    "BOOL": (True, False),
    "TIMESTAMP": MOMENTS,
}


def _value(random: Random, column: Property, traits: Traits) -> Any:
    if traits.nulls and random.random() < NULL_SHARE:
        return None
    if column.type in _CHOICES:
        return random.choice(_CHOICES[column.type])
    match column.type:
        case "INT64":
            return random.choice(traits.ints)
        case "DATE":
            return random.choice(traits.days)
        case "DOUBLE":
            return random.choice(FLOATS + ODD_FLOATS if traits.nan else FLOATS)
        case "LIST":
            return [random.choice(SMALL_INTS) for _ in range(random.randrange(4))]
        case "UUID":
            return f"00000000-0000-0000-0000-{random.randrange(10**12):012}"
        case "BLOB":
            return random.randbytes(random.randrange(5))
    raise ValueError(column.type)


def small() -> Graph:
    """The graph of the probes, small enough to follow by hand.

    P 1 knows 2 twice, 2 knows 3, 3 knows itself and 1, 4 knows itself; P 4 owns R 7; R 7 is tagged
    Q x three times.
    """
    person = NodeTable(label="P", key=_key("id", "INT64"), properties=_properties("s f b d m"))
    tag = NodeTable(label="Q", key=_key("name", "STRING"))
    thing = NodeTable(label="R", key=_key("id", "INT64"))
    edges = (
        EdgeTable(type="K", from_node="P", to_node="P", properties=_properties("w")),
        EdgeTable(type="H", from_node="P", to_node="R"),
        EdgeTable(type="M", from_node="R", to_node="Q"),
    )
    days = [dt.date(2020, 1, 2), None, dt.date(1900, 1, 1), dt.date(2024, 2, 29)]
    tables = {
        "P": pa.table(
            {
                "id": pa.array([1, 2, 3, 4]),
                "s": ["Ada", "Zoë 🐞", None, ""],
                "f": pa.array([1.5, 2.5, None, 0.25]),
                "b": [True, None, False, True],
                "d": pa.array(days, pa.date32()),
                "m": pa.array([1, 2, None, 127], pa.int8()),
            }
        ),
        "Q": pa.table({"name": ["x"]}),
        "R": pa.table({"id": pa.array([7])}),
        "K:P:P": pa.table(
            {
                "a": pa.array([1, 1, 2, 3, 3, 4]),
                "b": pa.array([2, 2, 3, 3, 1, 4]),
                "w": pa.array([1, 1, 2, None, 5, 6]),
            }
        ),
        "H:P:R": pa.table({"a": pa.array([4]), "b": pa.array([7])}),
        "M:R:Q": pa.table({"a": pa.array([7, 7, 7]), "b": ["x", "x", "x"]}),
    }
    schema = GraphSchema(nodes=(person, tag, thing), edges=edges)
    return Graph(traits=Traits(), schema=schema, tables=tables, nodes=nx.MultiDiGraph())
