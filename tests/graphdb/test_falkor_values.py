"""FalkorDB values without an Arrow type, and dates outside Python's range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.graphdb.contract import GraphSchema, NodeTable, Property
from penstock.graphdb.errors import CypherError
from penstock.graphdb.registry import Opening, open_engine
from tests.servers.falkor import falkordb

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.graphdb.contract import GraphEngine


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphEngine]:
    folder: Path = tmp_path_factory.mktemp("falkor")
    with falkordb(folder) as url:
        opened = open_engine("falkordb", Opening(folder=folder, memory_bytes=0, threads=1, url=url))
        table = NodeTable(label="P", key=Property(name="id", type="INT64"))
        opened.create(GraphSchema(nodes=(table,), edges=()))
        yield opened
        opened.close()


def answer(engine: GraphEngine, text: str) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    result = engine.query(text, timeout=60)
    return result.types, [row for batch in result.batches(1000) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("length", "text"),
    [
        ("P1Y2M3DT4H5M6S", "P1Y2M3DT4H5M6S"),
        ("P14D", "P14D"),
        ("P1M", "P1M"),
        ("PT36H", "P1DT12H"),
        ("PT59M", "PT59M"),
        ("PT0S", "PT0S"),
    ],
)
def test_a_duration_is_iso_8601(engine: GraphEngine, length: str, text: str) -> None:
    assert answer(engine, f"RETURN duration('{length}') AS x") == (("STRING",), [{"x": text}])


def test_times_and_durations_are_plain_texts_wherever_they_are(engine: GraphEngine) -> None:
    types, [row] = answer(
        engine,
        "RETURN localtime('10:11:12') AS a, [duration('P1D'), null] AS b,"
        " {t: localtime('10:11:12')} AS c, [duration('P1D'), 1] AS d",
    )
    assert types == ("STRING", "LIST<STRING>", "MAP", "LIST<ANY>")
    assert row == {
        "a": "10:11:12",
        "b": ["P1D", None],
        "c": {"t": "10:11:12"},
        "d": ['"P1D"', "1"],
    }


@pytest.mark.parametrize(
    "value",
    [
        "date('0000-01-01')",
        "[date('0000-01-01')]",
        "{d: date('9999-12-31') + duration('P1D')}",
        "localdatetime('9999-12-31T23:59:59') + duration('PT1S')",
        "duration('P99999999999Y')",
    ],
)
def test_what_no_date_holds_is_refused_with_what_to_write(engine: GraphEngine, value: str) -> None:
    with pytest.raises(CypherError, match="outside the years 1 to 9999") as refused:
        answer(engine, f"RETURN {value} AS x")
    assert "toString()" in (refused.value.hint or "")
    assert answer(engine, "RETURN date('9999-12-31') AS x")[1]
