"""Results as people and programs want them."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import networkx
import pyarrow.parquet as pq
import pytest

from penstock.client.results import LONGEST_CELL, SHOWN_ROWS, QueryResult

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ADA = {"_id": "Person:1", "_label": "Person", "name": "Ada <b>"}
BOB = {"_id": "Person:2", "_label": "Person", "name": "Bob"}
KNOWS = {"_id": "KNOWS:0", "_type": "KNOWS", "_src": "Person:1", "_dst": "Person:2", "since": 1840}
AGAIN = KNOWS | {"_id": "KNOWS:1", "since": 1841}


def _result(*rows: Sequence[object], columns: tuple[str, ...] = ("a", "r", "b")) -> QueryResult:
    kinds = {
        "a": "NODE",
        "r": "REL",
        "b": "NODE",
        "n": "INT64",
        "s": "STRING",
        "d": "DATE",
        "t": "TIMESTAMP",
    }
    return QueryResult(columns=columns, column_types=tuple(kinds[c] for c in columns), rows=rows)


def test_rows_are_dicts_and_columns_lists() -> None:
    result = _result([1, "x"], [2, None], columns=("n", "s"))
    assert list(result) == [{"n": 1, "s": "x"}, {"n": 2, "s": None}]
    assert (len(result), result[1], result.column("n")) == (2, {"n": 2, "s": None}, [1, 2])


def test_one_value_is_a_scalar_and_more_are_not() -> None:
    assert _result([42], columns=("n",)).scalar() == 42
    with pytest.raises(ValueError, match="2 rows of 1 columns"):
        _result([1], [2], columns=("n",)).scalar()


def test_nodes_and_edges_become_a_graph_with_parallel_edges_kept() -> None:
    graph = _result([ADA, KNOWS, BOB], [ADA, AGAIN, BOB]).to_networkx()
    assert isinstance(graph, networkx.MultiDiGraph)
    assert dict(graph.nodes(data="name")) == {"Person:1": "Ada <b>", "Person:2": "Bob"}
    assert graph.number_of_edges("Person:1", "Person:2") == 2


def test_nodes_are_found_inside_lists_and_paths() -> None:
    path = {"_nodes": [ADA, BOB], "_rels": [KNOWS]}
    result = _result([[ADA], path, None], columns=("a", "r", "b"))
    assert set(result.nodes()) == {"Person:1", "Person:2"}
    assert set(result.edges()) == {"KNOWS:0"}


def test_frames_keep_columns_and_nulls(tmp_path: Path) -> None:
    result = _result([1, "x"], [None, "y"], columns=("n", "s"))
    assert result.to_arrow().to_pydict() == {"n": [1, None], "s": ["x", "y"]}
    result.to_parquet(tmp_path / "r.parquet")
    assert pq.read_table(tmp_path / "r.parquet").num_rows == 2


def test_days_and_moments_are_themselves_again_in_every_frame() -> None:
    result = _result(["2026-11-16", "2026-11-16T01:02:03Z"], [None, None], columns=("d", "t"))
    day, moment = date(2026, 11, 16), datetime(2026, 11, 16, 1, 2, 3, tzinfo=UTC)
    table = result.to_arrow()
    assert [str(field.type) for field in table.schema] == ["date32[day]", "timestamp[us, tz=UTC]"]
    assert table.to_pylist()[0] == {"d": day, "t": moment}
    assert result.to_pandas().iloc[0].tolist() == [day, moment]
    assert result.to_polars().row(0) == (day, moment)
    assert result.to_pandas()["t"].isna().tolist() == [False, True]


def test_a_column_of_nothing_keeps_its_type() -> None:
    assert str(_result([None], columns=("n",)).to_arrow().schema.field("n").type) == "int64"


def test_nodes_that_disagree_about_a_property_still_become_a_table() -> None:
    other = BOB | {"name": 7}
    assert _result([ADA], [other], columns=("a",)).to_arrow().num_rows == 2


def test_nodes_and_edges_become_an_igraph_graph() -> None:
    graph = _result([ADA, KNOWS, BOB], [ADA, AGAIN, BOB]).to_igraph()
    assert (graph.is_directed(), graph.vcount(), graph.ecount()) == (True, 2, 2)
    assert graph.vs.find("Person:1")["label"] == "Ada <b>"
    assert sorted(graph.es["since"]) == [1840, 1841]
    ends_alone = _result([KNOWS], columns=("r",)).to_igraph()
    assert sorted(ends_alone.vs["name"]) == ["Person:1", "Person:2"]


def test_html_escapes_what_comes_from_the_data() -> None:
    text = _result(["<script>alert(1)</script>"], columns=("s",))._repr_html_()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_a_table_shows_its_first_rows_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    result = _result(*([[i] for i in range(SHOWN_ROWS + 1)]), columns=("n",))
    result.show()
    printed = capsys.readouterr().out
    assert f"{SHOWN_ROWS + 1} rows" in printed
    assert f"the first {SHOWN_ROWS} shown" in printed
    assert f"│ {SHOWN_ROWS} │" not in printed


def test_a_terminal_is_not_given_orders_by_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    result = _result(["\x1b]0;owned\x07\x1b[2J line\nnext \u202egnp.exe"], columns=("s",))
    result.show()
    printed = capsys.readouterr().out + result._repr_html_()
    assert not {"\x1b", "\x07", "\u202e"} & set(printed)
    assert r"\x1b" in printed
    named = QueryResult(columns=("\x1b[2J",), column_types=("STRING",), rows=[])
    assert "\x1b" not in repr(named)


def test_markup_in_the_data_is_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    _result(["[bold]x[/bold]"], columns=("s",)).show()
    assert "[bold]x[/bold]" in capsys.readouterr().out


@pytest.mark.parametrize(("length", "cut"), [(LONGEST_CELL, False), (LONGEST_CELL + 1, True)])
def test_a_long_cell_is_cut(length: int, cut: bool) -> None:
    assert ("…" in _result(["x" * length], columns=("s",))._repr_html_()) is cut


@pytest.mark.parametrize(
    ("package", "method"),
    [
        ("pandas", "to_pandas"),
        ("polars", "to_polars"),
        ("pyarrow", "to_arrow"),
        ("networkx", "to_networkx"),
        ("igraph", "to_igraph"),
    ],
)
def test_a_missing_package_is_named_with_the_command(
    monkeypatch: pytest.MonkeyPatch, package: str, method: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError) as caught:
        getattr(_result([1], columns=("n",)), method)()
    assert str(caught.value) == f"This needs {package}: pip install {package}"
