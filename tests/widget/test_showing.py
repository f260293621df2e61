"""What a result is drawn with, from the client: the graph that was asked answers for the
neighbors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock.client.results import QueryResult
from tests.client.server import Answer, answering
from tests.widget.graphs import knows, people

if TYPE_CHECKING:
    from tests.client.server import ScriptedServer

FOUND = {
    "columns": ["a"],
    "column_types": ["NODE"],
    "rows": [people(1)],
    "execution_time_ms": 1,
    "truncated": False,
}
AROUND = {"nodes": people(3), "edges": [knows(1, 0, 1), knows(2, 0, 2)], "truncated": True}


def _graph(scripted: ScriptedServer) -> Any:
    client = penstock.Client(scripted.url, "key")
    return client.instances.get(1)


INSTANCE: dict[str, Any] = {
    "data": {
        "id": 1,
        "name": "g",
        "status": "running",
        "url_slug": "slug",
        "wrapper_type": "ladybug",
    }
}


def test_a_view_asks_the_graph_that_was_queried() -> None:
    with answering(Answer(body=INSTANCE), Answer(body=FOUND), Answer(body=AROUND)) as scripted:
        view = _graph(scripted).query("MATCH (a) RETURN a").view(expand_cap=2)
        view.expand("Person:0")
    assert [node.caption for node in view.drawing.nodes] == ["P0", "P1", "P2"]
    asked = scripted.asked[-1]
    assert (asked.path, asked.body) == (
        "/wrapper/slug/subgraph",
        {"hops": 1, "start": ["Person:0"], "limit": 3},
    )


def test_outside_a_notebook_a_graph_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    QueryResult(columns=("a",), column_types=("NODE",), rows=[people(1)]).show()
    assert "(Person:0)" in capsys.readouterr().out


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ModuleNotFoundError, match="pip install anywidget"):
        QueryResult(columns=("a",), column_types=("NODE",), rows=[people(1)]).view()


def test_equal_results_are_equal_whoever_answers_for_their_neighbors() -> None:
    one = QueryResult(columns=("n",), column_types=("INT64",), rows=[[1]])
    other = QueryResult(
        columns=("n",),
        column_types=("INT64",),
        rows=[[1]],
        neighbors=lambda _, __: {"nodes": [], "edges": [], "truncated": False},
    )
    assert one == other
