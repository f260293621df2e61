"""Range conditions that FalkorDB's index answers incorrectly, and their rewrites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.graphdb.contract import GraphSchema, NodeTable, Property
from penstock.graphdb.cypher.index_ranges import without_index_ranges
from penstock.graphdb.registry import Opening, open_engine
from tests.servers.falkor import falkordb

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.graphdb.contract import GraphEngine

NAMES = ["null", "NULL", "b", "B", "é", "É", "it's", "a*", "ß", "名", "🐞", "10", "9"]
WIDE = [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 1]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (
            "MATCH (v:C) WHERE ((v.name)) <= 'x' AND v.name = 'q' RETURN v.name < 'x'",
            "MATCH (v:C) WHERE ((coalesce(v.name))) <= 'x' AND v.name = 'q' RETURN v.name < 'x'",
        ),
        (
            "MATCH (v:C) WHERE 'a' < v.`name` RETURN 1 UNION MATCH (v) WHERE v.age < 1 RETURN 1",
            (
                "MATCH (v:C) WHERE 'a' < coalesce(v.`name`) RETURN 1 UNION MATCH (v) WHERE v.age <"
                " 1"
                " RETURN 1"
            ),
        ),
        (
            "MATCH (a)-[:R]->(b) WITH a, b WHERE NOT b.name>a.name /* < a.name */ RETURN 1",
            (
                "MATCH (a)-[:R]->(b) WITH a, b WHERE NOT coalesce(b.name)>coalesce(a.name) /* <"
                " a.name"
                " */ RETURN 1"
            ),
        ),
        (
            "MATCH (v) WHERE v.name STARTS WITH 'WHERE v.name < 1' AND v.age > 3 RETURN v",
            "MATCH (v) WHERE v.name STARTS WITH 'WHERE v.name < 1' AND v.age > 3 RETURN v",
        ),
    ],
)
def test_a_text_that_is_compared_in_a_condition_is_not_asked_of_the_index(
    text: str, written: str
) -> None:
    assert without_index_ranges(text, {"name"}) == written
    assert without_index_ranges(text, set()) == text


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphEngine]:
    folder: Path = tmp_path_factory.mktemp("falkor")
    tables = {
        "Name": (Property(name="name", type="STRING"), pa.array(NAMES)),
        "Number": (Property(name="number", type="INT64"), pa.array(WIDE)),
    }
    nodes = tuple(
        NodeTable(label=label, key=key, properties=()) for label, (key, _) in tables.items()
    )
    with falkordb(folder) as url:
        opened = open_engine(
            "falkordb", Opening(folder=folder, memory_bytes=2**26, threads=1, url=url)
        )
        opened.create(GraphSchema(nodes=nodes, edges=()))
        for node in nodes:
            key, values = tables[node.label]
            file = folder / f"{node.label}.parquet"
            pq.write_table(pa.table({key.name: values}), file)
            opened.load(node, [file])
        yield opened
        opened.close()


def ask(engine: GraphEngine, text: str) -> set[object]:
    result = engine.query(text)
    return {value for batch in result.batches(100) for value in batch.column(0).to_pylist()}


@pytest.mark.parametrize("value", [*NAMES, "", "A", "z"])
def test_texts_are_compared_by_their_characters(engine: GraphEngine, value: str) -> None:
    written = value.replace("'", "\\'")
    match = "MATCH (n:Name) WHERE"
    for condition, right in (
        (f"n.name < '{written}'", {name for name in NAMES if name < value}),
        (f"(n.name) >= '{written}'", {name for name in NAMES if name >= value}),
        (f"NOT '{written}' < n.name", {name for name in NAMES if name <= value}),
        (f"n.name = '{written}'", {name for name in NAMES if name == value}),
        (f"n.name IN ['{written}']", {name for name in NAMES if name == value}),
        (f"n.name STARTS WITH '{written}'", {name for name in NAMES if name.startswith(value)}),
    ):
        assert ask(engine, f"{match} {condition} RETURN n.name") == right, condition


@pytest.mark.parametrize("value", WIDE)
def test_wide_integers_are_compared_exactly(engine: GraphEngine, value: int) -> None:
    for sign, right in (
        ("<=", {number for number in WIDE if number <= value}),
        (">", {number for number in WIDE if number > value}),
        ("=", {value}),
    ):
        assert (
            ask(engine, f"MATCH (n:Number) WHERE n.number {sign} {value} RETURN n.number") == right
        )
    assert ask(engine, f"MATCH (n:Number) WHERE n.number IN [{value}] RETURN n.number") == {value}
