"""The conformance cases of graph database backends.

A case is a function of an opened, empty engine and a folder for files; its name is the behavior.
Cases that destroy the database (a failed load) run in a process each.
"""

from __future__ import annotations

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.graphdb.contract import (
    KEY,
    OFFSET,
    SOURCE,
    TARGET,
    EdgeTable,
    GraphEngine,
    GraphSchema,
    Interrupt,
    NodeTable,
    Property,
)
from penstock.graphdb.errors import (
    CypherError,
    GraphFailed,
    LoadRefused,
    QueryInterrupted,
    SchemaRefused,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

BIG = 2**62 + 1
ENDLESS = (
    "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b WITH a, b WHERE a * b % 7 = 9"
    " RETURN count(*) AS c"
)
PERSON = NodeTable(
    label="Person",
    key=Property(name="id", type="INT64"),
    properties=(
        Property(name="name", type="STRING"),
        Property(name="set", type="BOOL"),
        Property(name="born", type="DATE"),
        Property(name="seen", type="TIMESTAMP"),
        Property(name="score", type="DOUBLE"),
        Property(name="tags", type="LIST", arrow=pa.list_(pa.string())),
    ),
)
CITY = NodeTable(label="City", key=Property(name="name", type="STRING"))
KNOWS = EdgeTable(
    type="KNOWS",
    from_node="Person",
    to_node="Person",
    properties=(Property(name="weight", type="DOUBLE"),),
)
LIVES = EdgeTable(type="LIVES_IN", from_node="Person", to_node="City")
SCHEMA = GraphSchema(nodes=(PERSON, CITY), edges=(KNOWS, LIVES))
TABLES: Mapping[str, pa.Table] = {
    "Person": pa.table(
        {
            "id": pa.array([1, 2, 3, BIG]),
            "name": ["Ada", 'Zoë 🐞 it\'s \\ "q"', None, ""],
            "set": [True, None, False, True],
            "born": pa.array([dt.date(1815, 12, 10), None, None, dt.date(2000, 2, 29)]),
            "seen": pa.array([1767323045, None, None, 0], pa.timestamp("s")).cast(
                pa.timestamp("us")
            ),
            "score": [1.5, None, -0.25, 1e300],
            "tags": pa.array([["a", "b"], None, [], ["ß"]], pa.list_(pa.string())),
        }
    ),
    "City": pa.table({"name": ["London", "Żółw"]}),
    "KNOWS": pa.table(
        {"a": pa.array([1, 2, 3]), "b": pa.array([2, 3, BIG]), "weight": [0.5, None, 2.0]}
    ),
    "LIVES_IN": pa.table({"a": pa.array([1, 2]), "b": ["London", "Żółw"]}),
}


def a_load_gives_the_rows_of_all_its_files(engine: GraphEngine, folder: Path) -> None:
    table = TABLES["Person"]
    engine.create(SCHEMA)
    files = [_file(folder, f"p{i}", table.slice(i * 2, 2)) for i in range(2)]
    assert engine.load(PERSON, files).rows == 4
    assert engine.load(CITY, [_file(folder, "c", TABLES["City"])]).rows == 2
    assert (
        engine.load(
            KNOWS, [_file(folder, f"k{i}", TABLES["KNOWS"].slice(i * 2, 2)) for i in range(2)]
        ).rows
        == 3
    )
    assert engine.load(LIVES, []).rows == 0
    assert engine.counts() == {
        "Person": 4,
        "City": 2,
        "KNOWS:Person:Person": 3,
        "LIVES_IN:Person:City": 0,
    }


def values_come_back_as_they_went_in(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    names = TABLES["Person"].column_names
    columns = ", ".join(f"n.`{name}` AS `{name}`" for name in names)
    rows = _rows(engine, f"MATCH (n:Person) RETURN {columns} ORDER BY n.id")
    assert rows == TABLES["Person"].to_pylist()


def types_are_told_in_the_words_of_the_wire(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    result = engine.query(
        "MATCH (n:Person {id: 1})-[e:KNOWS]->(m) RETURN n, e, n.id AS i, n.name AS s, n.score AS d,"
        " n.set AS b,"
        " n.born AS day, n.seen AS t, n.tags AS l"
    )
    assert result.types == (
        "NODE",
        "REL",
        "INT64",
        "STRING",
        "DOUBLE",
        "BOOL",
        "DATE",
        "TIMESTAMP",
        "LIST<STRING>",
    )
    result.close()


def nodes_edges_and_paths_have_one_shape(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    [row] = _rows(engine, "MATCH p = (n:Person {id: 1})-[e:LIVES_IN]->(c:City) RETURN n, e, c, p")
    assert (row["n"]["_id"], row["n"]["_label"], row["n"]["name"]) == ("Person:1", "Person", "Ada")
    assert (row["e"]["_type"], row["e"]["_src"], row["e"]["_dst"]) == (
        "LIVES_IN",
        "Person:1",
        "City:London",
    )
    assert row["c"] == {"_id": "City:London", "_label": "City", "name": "London"}
    assert [n["_id"] for n in row["p"]["_nodes"]] == ["Person:1", "City:London"]
    assert [e["_id"] for e in row["p"]["_rels"]] == [row["e"]["_id"]]


def what_is_missing_is_null(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    text = "OPTIONAL MATCH (n:Person {id: 99})-[e:KNOWS]->(m) RETURN n, e, n.name AS x"
    assert _rows(engine, text) == [{"n": None, "e": None, "x": None}]
    # The same beside what is there.
    text = "MATCH (n:Person) OPTIONAL MATCH (n)-[e:KNOWS]->(m) WHERE n.id < 0 RETURN DISTINCT e, m"
    assert _rows(engine, text) == [{"e": None, "m": None}]


def an_integer_parameter_has_64_bits(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    text = "UNWIND $l AS x RETURN $p + $p AS p, x + x AS x, 1.5 < $p * 2 AS b"
    expected = [{"p": 200, "x": 200, "b": True}, {"p": 200, "x": -256, "b": True}]
    assert _rows(engine, text, {"p": 100, "l": [100, -128]}) == expected


def an_empty_answer_has_its_columns(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    result = engine.query("MATCH (n:Person {id: 99}) RETURN n.id AS i, n.name AS s")
    [batch] = list(result.batches(10))
    assert (result.columns, batch.schema.names, batch.num_rows) == (("i", "s"), ["i", "s"], 0)


def parameters_are_values_and_never_text(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    evil = "' DELETE n // \\' \" $x `y` \n 🐞"
    parameters = {"i": BIG, "s": evil, "f": 0.5, "b": True, "l": [1, 2], "n": None}
    [row] = _rows(engine, "RETURN $i AS i, $s AS s, $f AS f, $b AS b, $l AS l, $n AS n", parameters)
    assert row == parameters
    assert _rows(engine, "MATCH (n:Person {id: $i}) RETURN n.id AS id", {"i": BIG}) == [{"id": BIG}]


def numbers_of_any_size_in_parameters_are_doubles(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    numbers = [1e16, -1e22, 1.5e308, 5e-324, 1e-7, -2.5]
    for number in numbers:
        assert _rows(engine, "RETURN $p AS x, $p + 0.0 = $p AS y", {"p": number}) == [
            {"x": number, "y": True}
        ]
    assert _rows(engine, "RETURN $p AS x", {"p": numbers}) == [{"x": numbers}]


def a_limit_of_more_rows_than_any_result_has_changes_nothing(
    engine: GraphEngine, folder: Path
) -> None:
    _fill(engine, folder)
    people = "MATCH (n:Person) RETURN n.id AS x ORDER BY x"
    for count in (2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1):
        assert [row["x"] for row in _rows(engine, f"{people} LIMIT {count}")] == [1, 2, 3, BIG]
        skipping = f"{people} SKIP 1 LIMIT $count"
        assert [row["x"] for row in _rows(engine, skipping, {"count": count})] == [2, 3, BIG]


def more_rows_than_there_are_can_be_skipped(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    people = "MATCH (n:Person) RETURN n.id AS x, n.name AS y"
    for count in (4, 256, 257, 100_000, 2**31, 2**32 - 1, 2**32, 2**32 + 2, 2**63 - 1):
        for order in ("", " ORDER BY n.id", " ORDER BY n.name DESC, x"):
            assert _rows(engine, f"{people}{order} SKIP {count}") == []
            limited = f"{people}{order} SKIP $count LIMIT 10"
            result = engine.query(limited, {"count": count})
            assert (result.rows, result.columns) == (0, ("x", "y"))
            result.close()


def many_sorted_rows_can_be_skipped(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    numbers = "UNWIND range(1, 300000) AS x RETURN x ORDER BY x DESC"
    assert [row["x"] for row in _rows(engine, f"{numbers} SKIP 299998")] == [2, 1]
    assert [row["x"] for row in _rows(engine, f"{numbers} SKIP 1000 LIMIT 2")] == [299000, 298999]
    assert _rows(engine, f"{numbers} SKIP 300000 LIMIT 2") == []


def a_bound_that_is_no_number_of_rows_is_refused(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    for value in (None, True, -1, 1.5, "2", [1]):
        for bound in ("SKIP", "LIMIT"):
            text = f"MATCH (n:Person) RETURN n.id AS x ORDER BY x {bound} $count"
            error = _raises(CypherError, lambda t=text, v=value: engine.query(t, {"count": v}))
            assert f"{bound} $count is" in error.message, error.message
    assert len(_rows(engine, "MATCH (n:Person) RETURN n.id AS x LIMIT $count", {"count": 0})) == 0


def maps_in_a_parameter_keep_their_keys(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    rows = [{"a": 1, "b": "x"}, {"b": "y"}, {"a": 3}]
    text = "UNWIND $rows AS r RETURN r.a AS a, r.b AS b"
    assert _rows(engine, text, {"rows": rows}) == [{"a": r.get("a"), "b": r.get("b")} for r in rows]


def what_a_parameter_cannot_hold_does_no_harm(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    for value in (
        [{"a": 1}, None],
        [{"a": {"x": 1}}, {"a": None}],
        [1, {"b": None}],
        {"b": None},
        [None],
        {"a": []},
    ):
        with suppress(CypherError):
            _rows(engine, "RETURN $p AS p", {"p": value})
    assert _rows(engine, "RETURN 1 AS x") == [{"x": 1}]


def an_integer_beyond_64_bits_is_refused(engine: GraphEngine, folder: Path) -> None:
    _raises(CypherError, lambda: engine.query("RETURN $x AS x", {"x": 2**64}))


def a_query_that_cannot_be_read_says_so(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    _raises(CypherError, lambda: engine.query("MATCH (n RETURN n"))
    _raises(CypherError, lambda: engine.query("RETURN no_such_function(1)"))


def a_query_cannot_write(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    for text in (
        "CREATE (:City {name: 'x'})",
        "MATCH (n:City) DELETE n",
        "MATCH (n:City) SET n.name = 'x'",
    ):
        _raises(CypherError, lambda text=text: engine.query(text))
    assert engine.counts()["City"] == 2


def a_timeout_ends_a_query(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    _raises(QueryInterrupted, lambda: engine.query(ENDLESS, timeout=0.3))
    assert _rows(engine, "RETURN 1 AS x") == [{"x": 1}]


def an_interrupt_ends_a_query_where_the_backend_can(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    cord = Interrupt()
    if engine.capabilities.interrupt:
        timer = threading.Timer(0.3, cord.pull)
        timer.start()
        _raises(QueryInterrupted, lambda: engine.query(ENDLESS, timeout=60, interrupt=cord))
        timer.join()
    cord.pull()
    _raises(QueryInterrupted, lambda: engine.query("RETURN 1", interrupt=cord))
    assert _rows(engine, "RETURN 1 AS x") == [{"x": 1}]


def many_readers_read_at_once(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    with ThreadPoolExecutor(8) as threads:
        counts = threads.map(
            lambda i: _rows(engine, "UNWIND range(1, 1000) AS x RETURN max(x) + $i AS m", {"i": i}),
            range(64),
        )
        assert [row[0]["m"] for row in counts] == [1000 + i for i in range(64)]


def tables_for_algorithms_are_dense(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    people = engine.node_table("Person", ["name"])
    assert people.column(OFFSET).to_pylist() == [0, 1, 2, 3]
    keys = people.column(KEY).to_pylist()
    assert dict(zip(keys, people.column("name").to_pylist(), strict=True))[1] == "Ada"
    edges = engine.edge_table(KNOWS, ["weight"]).to_pylist()
    assert {(keys[e[SOURCE]], keys[e[TARGET]], e["weight"]) for e in edges} == {
        (1, 2, 0.5),
        (2, 3, None),
        (3, BIG, 2.0),
    }
    cities = engine.node_table("City").column(KEY).to_pylist()
    lives = engine.edge_table(LIVES).to_pylist()
    assert {(keys[e[SOURCE]], cities[e[TARGET]]) for e in lives} == {(1, "London"), (2, "Żółw")}


def tables_for_algorithms_hold_properties_of_any_name(engine: GraphEngine, folder: Path) -> None:
    names = tuple(Property(name=name, type="INT64") for name in ("key", "offset", "src", "dst"))
    stop = NodeTable(label="Stop", key=Property(name="id", type="INT64"), properties=names)
    trip = EdgeTable(type="TRIP", from_node="Stop", to_node="Stop", properties=names)
    engine.create(GraphSchema(nodes=(stop,), edges=(trip,)))
    values = {p.name: pa.array([10 * i, 10 * i + 1]) for i, p in enumerate(names, start=1)}
    engine.load(stop, [_file(folder, "stop", pa.table({"id": pa.array([1, 2]), **values}))])
    ends = {"from": pa.array([1, 2]), "to": pa.array([2, 2])}
    engine.load(trip, [_file(folder, "trip", pa.table({**ends, **values}))])
    expected = [
        {"key": 10, "offset": 20, "src": 30, "dst": 40},
        {"key": 11, "offset": 21, "src": 31, "dst": 41},
    ]
    stops = engine.node_table("Stop", list(values)).to_pylist()
    assert [row.pop(KEY) for row in stops] == [1, 2]
    assert [row.pop(OFFSET) for row in stops] == [0, 1]
    assert stops == expected
    trips = engine.edge_table(trip, list(values)).sort_by(SOURCE).to_pylist()
    assert [(row.pop(SOURCE), row.pop(TARGET)) for row in trips] == [(0, 1), (1, 1)]
    assert trips == expected


def write_back_sets_replaces_and_changes_its_type(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    all_keys = pa.array([1, 2, 3, BIG])
    assert (
        engine.write_back(
            "Person", "rank", pa.table({"key": all_keys, "value": [0.1, 0.2, 0.3, 0.4]})
        )
        == 4
    )
    assert _ranks(engine) == {1: 0.1, 2: 0.2, 3: 0.3, BIG: 0.4}
    assert engine.written("Person") == {"rank": "DOUBLE"}
    assert (
        engine.write_back(
            "Person", "rank", pa.table({"key": pa.array([1, BIG]), "value": [5.0, 6.0]})
        )
        == 2
    )
    assert _ranks(engine) == {1: 5.0, 2: None, 3: None, BIG: 6.0}
    assert (
        engine.write_back(
            "Person", "rank", pa.table({"key": all_keys, "value": pa.array([7, 8, 9, 10])})
        )
        == 4
    )
    assert _ranks(engine) == {1: 7, 2: 8, 3: 9, BIG: 10}
    assert (
        engine.write_back(
            "City", "size", pa.table({"key": ["London", "Żółw"], "value": pa.array([1, 2])})
        )
        == 2
    )
    _raises(
        CypherError,
        lambda: engine.write_back("Person", "name", pa.table({"key": all_keys, "value": all_keys})),
    )


def write_back_goes_on_beside_readers(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    cord = Interrupt()
    with ThreadPoolExecutor(1) as threads:
        waits = engine.capabilities.memory_model == "memory"
        reading = threads.submit(_stopped, engine, cord, 2 if waits else 20)
        engine.write_back("Person", "rank", pa.table({"key": pa.array([1]), "value": [0.5]}))
        assert waits or not reading.done()
        cord.pull()
        reading.result(timeout=60)  # a backend that cannot be interrupted ends by its time
    assert _ranks(engine)[1] == 0.5


def a_path_of_a_hundred_steps_is_walked(engine: GraphEngine, folder: Path) -> None:
    engine.create(SCHEMA)
    ids = pa.array(range(102))
    blank = {
        name: pa.nulls(102, column.type)
        for name, column in zip(
            TABLES["Person"].column_names, TABLES["Person"].columns, strict=True
        )
    }
    engine.load(PERSON, [_file(folder, "chain", pa.table(blank | {"id": ids}))])
    links = pa.table(
        {"a": ids.slice(0, 101), "b": ids.slice(1, 101), "weight": pa.nulls(101, pa.float64())}
    )
    engine.load(KNOWS, [_file(folder, "links", links)])
    reach = "*SHORTEST 1..120" if engine.capabilities.memory_model == "disk" else "*1..120"
    [row] = _rows(
        engine,
        (
            f"MATCH p = (a:Person {{id: 0}})-[:KNOWS{reach}]->(b:Person {{id: 100}}) RETURN"
            f" length(p)"
            f" AS l, p"
        ),
    )
    assert row["l"] == 100
    assert [n["_id"] for n in row["p"]["_nodes"]] == [f"Person:{i}" for i in range(101)]


def keys_of_every_kind_are_found(engine: GraphEngine, folder: Path) -> None:
    day = NodeTable(label="Day", key=Property(name="on", type="DATE"))
    thing = NodeTable(label="Thing", key=Property(name="uid", type="UUID"))
    on = EdgeTable(type="ON", from_node="Thing", to_node="Day")
    engine.create(GraphSchema(nodes=(day, thing), edges=(on,)))
    days, uid = [dt.date(2026, 1, 1), dt.date(1900, 2, 3)], str(UUID(int=7))
    engine.load(day, [_file(folder, "day", pa.table({"on": days}))])
    engine.load(thing, [_file(folder, "thing", pa.table({"uid": [uid]}))])
    assert engine.load(on, [_file(folder, "on", pa.table({"a": [uid], "b": days[:1]}))]).rows == 1
    [row] = _rows(engine, "MATCH (t:Thing)-[e:`ON`]->(d:Day) RETURN t, e, d")
    assert (row["t"]["_id"], row["d"]["_id"]) == (f"Thing:{uid}", "Day:2026-01-01")
    assert (row["e"]["_src"], row["e"]["_dst"]) == (f"Thing:{uid}", "Day:2026-01-01")
    keys = engine.node_table("Thing").column(KEY)
    assert engine.write_back("Thing", "n", pa.table({"key": keys, "value": pa.array([1])})) == 1
    keys = engine.node_table("Day").column(KEY)
    assert engine.write_back("Day", "n", pa.table({"key": keys, "value": pa.array([1, 2])})) == 2


def edges_without_endpoints_are_dropped_on_request(engine: GraphEngine, folder: Path) -> None:
    _fill(engine, folder)
    loaded = engine.load(LIVES, [_file(folder, "more", _dangling())], dangling="drop")
    assert (loaded.rows, loaded.dropped) == (1, 2)
    assert engine.counts()["LIVES_IN:Person:City"] == 3


def fatal_an_edge_without_endpoint_is_an_error_with_examples(
    engine: GraphEngine, folder: Path
) -> None:
    _fill(engine, folder)
    error = _raises(LoadRefused, lambda: engine.load(LIVES, [_file(folder, "more", _dangling())]))
    assert [(m["label"], m["edges"], list(m["examples"])) for m in error.details["missing"]] == [
        ("Person", 1, ["77"]),
        ("City", 1, ["Atlantis"]),
    ]


def fatal_endpoints_are_told_also_where_files_had_to_be_rewritten(
    engine: GraphEngine, folder: Path
) -> None:
    at = Property(name="at", type="TIMESTAMP")
    stop = NodeTable(label="Stop", key=Property(name="id", type="INT64"), properties=(at,))
    trip = EdgeTable(type="TRIP", from_node="Stop", to_node="Stop", properties=(at,))
    engine.create(GraphSchema(nodes=(stop,), edges=(trip,)))
    moments = pa.array([1, 2], pa.timestamp("ns"))
    engine.load(stop, [_file(folder, "stop", pa.table({"id": pa.array([1, 2]), "at": moments}))])
    trips = _file(
        folder, "trip", pa.table({"a": pa.array([1, 2]), "b": pa.array([2, 9]), "at": moments})
    )
    error = _raises(LoadRefused, lambda: engine.load(trip, [trips]))
    assert [(m["edges"], list(m["examples"])) for m in error.details["missing"]] == [(1, ["9"])]


def fatal_a_key_that_is_there_twice_is_an_error_with_examples(
    engine: GraphEngine, folder: Path
) -> None:
    engine.create(SCHEMA)
    twice = _file(folder, "twice", pa.table({"name": ["Rome", "Oslo", "Rome"]}))
    error = _raises(LoadRefused, lambda: engine.load(CITY, [twice]))
    assert error.details["examples"] == ["Rome"]


def fatal_a_key_that_is_null_is_an_error(engine: GraphEngine, folder: Path) -> None:
    engine.create(SCHEMA)
    nothing = _file(folder, "null", pa.table({"name": ["Rome", None]}))
    error = _raises(LoadRefused, lambda: engine.load(CITY, [nothing]))
    assert error.details["null_keys"] == 1


def fatal_a_name_that_cannot_be_quoted_is_refused(engine: GraphEngine, folder: Path) -> None:
    odd = NodeTable(label="Odd`Name", key=Property(name="id", type="INT64"))
    _raises(
        (SchemaRefused, GraphFailed), lambda: engine.create(GraphSchema(nodes=(odd,), edges=()))
    )


CASES: dict[str, Callable[[GraphEngine, Path], None]] = {
    name: case
    for name, case in list(globals().items())
    if callable(case) and not name.startswith("_") and getattr(case, "__module__", "") == __name__
}


def _fill(engine: GraphEngine, folder: Path) -> None:
    engine.create(SCHEMA)
    for table in (*SCHEMA.nodes, *SCHEMA.edges):
        name = table.label if isinstance(table, NodeTable) else table.type
        engine.load(table, [_file(folder, name, TABLES[name])])


def _dangling() -> pa.Table:
    return pa.table({"a": pa.array([3, 77, 1]), "b": ["London", "London", "Atlantis"]})


def _file(folder: Path, name: str, table: pa.Table) -> Path:
    place = folder / f"{name}.parquet"
    pq.write_table(table, place)
    return place


def _rows(
    engine: GraphEngine, text: str, parameters: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    result = engine.query(text, parameters, timeout=60)
    try:
        return [row for batch in result.batches(1000) for row in batch.to_pylist()]
    finally:
        result.close()


def _ranks(engine: GraphEngine) -> dict[int, object]:
    return {
        row["id"]: row["rank"]
        for row in _rows(engine, "MATCH (n:Person) RETURN n.id AS id, n.rank AS rank")
    }


def _stopped(engine: GraphEngine, cord: Interrupt, timeout: float) -> None:
    _raises(QueryInterrupted, lambda: engine.query(ENDLESS, timeout=timeout, interrupt=cord))


def _raises(kind: type[Any] | tuple[type[Any], ...], call: Callable[[], object]) -> Any:
    try:
        call()
    except kind as e:
        return e
    raise AssertionError(f"{kind} was not raised")
