"""A notebook that was run, made into a page, and opened where there is no network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.widget.screen import DEADLINE_MS

if TYPE_CHECKING:
    from pathlib import Path

    from nbformat import NotebookNode

    from tests.widget.screen import Screen

CELLS = (
    """
from penstock.client.results import QueryResult

people = [
    {"_id": f"Person:{i}", "_label": "Person", "name": f"P{i} </script>", "rank": i / 5}
    for i in range(6)
]
edges = [
    {"_id": f"KNOWS:{i}", "_type": "KNOWS", "_src": f"Person:{i}", "_dst": f"Person:{(i + 1) % 6}"}
    for i in range(6)
]
rows = [[people[i], edges[i], people[(i + 1) % 6]] for i in range(6)]
graph = QueryResult(columns=("a", "r", "b"), column_types=("NODE", "REL", "NODE"), rows=rows)
table = QueryResult(columns=("n",), column_types=("INT64",), rows=[[42]])
both = QueryResult(columns=("a", "n"), column_types=("NODE", "INT64"), rows=[[people[0], 7]])
""",
    "graph.show(colour_by='rank')",
    "table.show()",
    "both.show()",
    "view = graph.view(height=400); view",
    "view.selection = ['Person:1']; [node.caption for node in view.selected]",
    "import sys; sys.modules['anywidget'] = None; graph.show()",
)
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
async def notebook(tmp_path_factory: pytest.TempPathFactory) -> NotebookNode:
    folder: Path = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(folder / name.lower()))
        document = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source) for source in CELLS]
        )
        client = NotebookClient(
            document, timeout=120, resources={"metadata": {"path": str(folder)}}
        )
        return await client.async_execute()


def _data(notebook: NotebookNode, cell: int) -> list[dict[str, Any]]:
    return [dict(output["data"]) for output in notebook.cells[cell].outputs if "data" in output]


def test_a_graph_is_shown_as_a_widget_with_a_page_for_those_who_have_none(
    notebook: NotebookNode,
) -> None:
    (shown,) = _data(notebook, 1)
    assert {WIDGET, "text/html", "text/plain"} <= set(shown)


def test_a_result_without_nodes_is_a_table(notebook: NotebookNode) -> None:
    (shown,) = _data(notebook, 2)
    assert WIDGET not in shown
    assert "<td>42</td>" in shown["text/html"]


def test_what_a_graph_cannot_hold_comes_as_a_table_too(notebook: NotebookNode) -> None:
    graph, table = _data(notebook, 3)
    assert WIDGET in graph
    assert "<td>7</td>" in table["text/html"]


def test_the_selection_is_at_hand(notebook: NotebookNode) -> None:
    (shown,) = _data(notebook, 5)
    assert shown["text/plain"] == "['P1 </script>']"


def test_without_the_extra_there_is_a_table_and_one_line_that_tells_how(
    notebook: NotebookNode,
) -> None:
    table, hint = _data(notebook, 6)
    assert "<table>" in table["text/html"]
    assert (
        hint["text/plain"].strip() == "This can be drawn as a graph: pip install 'penstock[widget]'"
    )


async def test_the_page_of_it_draws_offline(
    notebook: NotebookNode, screen: Screen, tmp_path: Path
) -> None:
    outputs = [data.get("text/html", "") for cell in (1, 2, 4) for data in _data(notebook, cell)]
    file = tmp_path / "notebook.html"
    file.write_text("<!doctype html><meta charset=utf-8>" + "\n".join(outputs), encoding="utf-8")
    await screen.page.goto(file.as_uri())
    frame = screen.page.frame_locator("iframe").first
    host = frame.locator(".penstock-graph[data-layout=settled]")
    await host.wait_for(timeout=DEADLINE_MS)
    box = await screen.page.locator("iframe").first.bounding_box()
    assert box is not None
    ids = ["Person:0", "Person:5"]
    inside = await host.evaluate("(host, ids) => ids.map((id) => host.view.positionOf(id))", ids)
    points = [(box["x"] + at["x"], box["y"] + at["y"]) for at in inside]
    assert await screen.colours(points) == ["#4158c7", "#e8632b"]
    assert [url for url in screen.asked if not url.startswith("about:")] == [file.as_uri()]
