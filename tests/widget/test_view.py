"""The widget, from Python: its traits, its file, and what a reader does in a real browser."""

from __future__ import annotations

import asyncio
import html
import re
from typing import TYPE_CHECKING

import pytest

from penstock.widget.drawing import Drawing
from penstock.widget.view import GraphView
from tests.widget.graphs import knows, people, ring
from tests.widget.harness import displayed, wire

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser

    from penstock.widget.expansion import Neighborhood


def _star(limit: int) -> Neighborhood:
    """The first person among 100 others, cut at the limit."""
    edges = [knows(i, 0, i) for i in range(1, limit)]
    return {"nodes": people(limit), "edges": edges, "truncated": limit < 101}


class Asked:
    """Who was asked about, and how many were wanted."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.rung = asyncio.Event()

    def __call__(self, node_id: str, limit: int) -> Neighborhood:
        self.calls.append((node_id, limit))
        self.rung.set()
        return _star(limit)


def test_a_view_holds_what_is_drawn_and_how() -> None:
    view = GraphView(ring(3), colour_by="rank", size_by="rank", height=300)
    assert view.data == ring(3).as_dict()
    assert (view.colour_by, view.size_by, view.height, view.expandable) == (
        "rank",
        "rank",
        300,
        False,
    )


def test_the_selected_come_with_their_properties() -> None:
    view = GraphView(ring(3))
    view.selection = ["Person:0", "Person:1"]
    assert [node.caption for node in view.selected] == ["P0", "P1"]
    assert [edge.id for edge in view.selected_edges] == ["KNOWS:0"]


def test_scores_colour() -> None:
    view = GraphView(ring(3))
    view.score("pagerank", {"Person:0": 0.5})
    assert view.colour_by == "pagerank"
    assert view.data["nodes"][0]["properties"]["pagerank"] == 0.5


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    path = GraphView(ring(3)).to_html(tmp_path / "ring.html", title="A ring")
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "<title>A ring</title>" in path.read_text(encoding="utf-8")


def test_without_widgets_the_drawing_stands_in_a_frame() -> None:
    bundle = GraphView(ring(3), height=300)._repr_mimebundle_()
    assert bundle is not None
    data, _ = bundle
    assert "application/vnd.jupyter.widget-view+json" in data
    frame = re.fullmatch(r'<iframe srcdoc="([^"]*)" ([^>]*)></iframe>', data["text/html"])
    assert frame is not None
    assert html.unescape(frame[1]).startswith("<!doctype html>")
    assert 'sandbox="allow-scripts allow-downloads"' in frame[2]


def test_a_view_without_expand_says_so() -> None:
    with pytest.raises(ValueError, match="no expand= callback"):
        GraphView(ring(3)).expand("Person:0")


@pytest.mark.parametrize("cap", [0, -1])
def test_a_cap_is_at_least_one(cap: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        GraphView(ring(3), expand_cap=cap)


def test_an_expansion_asks_for_the_cap_and_what_is_drawn_already() -> None:
    asked = Asked()
    view = GraphView(Drawing.from_elements(people(1)), expand=asked, expand_cap=10)
    view.expand("Person:0")
    view.expand("Person:0")
    assert asked.calls == [("Person:0", 11), ("Person:0", 21)]
    assert len(view.drawing.nodes) == 21


async def test_an_async_source_of_neighbors_is_awaited() -> None:
    done = asyncio.Event()

    async def neighbors(node_id: str, limit: int) -> Neighborhood:
        return _star(limit)

    view = GraphView(Drawing.from_elements(people(1)), expand=neighbors, expand_cap=5)
    view.observe(lambda _: done.set(), "data")
    view.expand("Person:0")
    await asyncio.wait_for(done.wait(), 10)
    assert len(view.drawing.nodes) == 6


async def test_what_is_clicked_sought_and_chosen_reaches_python(
    chromium: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire(monkeypatch)
    view = GraphView(ring(6).with_scores("rank", {f"Person:{i}": i / 7 for i in range(6)}))
    heard: asyncio.Queue[tuple[str, object]] = asyncio.Queue()
    names = ["selection", "search", "colour_by", "size_by"]
    view.observe(lambda change: heard.put_nowait((change["name"], change["new"])), names)
    async with displayed(view, chromium) as screen:
        await screen.click("Person:2")
        assert await asyncio.wait_for(heard.get(), 10) == ("selection", ["Person:2"])
        await screen.page.keyboard.down("Control")
        await screen.click("Person:4")
        await screen.page.keyboard.up("Control")
        assert await asyncio.wait_for(heard.get(), 10) == ("selection", ["Person:2", "Person:4"])
        await screen.page.get_by_label("Colour by").select_option("rank")
        assert await asyncio.wait_for(heard.get(), 10) == ("colour_by", "rank")
        await screen.page.get_by_label("Size by").select_option("rank")
        assert await asyncio.wait_for(heard.get(), 10) == ("size_by", "rank")
        await screen.page.get_by_label("Search nodes").fill("P5")
        assert await asyncio.wait_for(heard.get(), 10) == ("search", "P5")
    assert [node.caption for node in view.selected] == ["P2", "P4"]


async def test_what_python_sets_is_seen(chromium: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    wire(monkeypatch)
    view = GraphView(ring(6))
    async with displayed(view, chromium) as screen:
        view.selection = ["Person:1"]
        await screen.page.locator(".details h2", has_text="P1").wait_for()
        view.search = "p3"
        await screen.page.locator(".found", has_text="1 found").wait_for()
        view.score("rank", {f"Person:{i}": i / 7 for i in range(6)})
        await screen.page.locator(".legend h2", has_text="rank").wait_for()
        view.drawing = ring(4)
        await screen.page.locator(".status", has_text="4 nodes, 4 edges").wait_for()
        await screen.page.evaluate("() => takeAway()")
        assert await screen.page.locator(".stage").count() == 0


async def test_a_double_click_brings_neighbors_up_to_the_cap(
    chromium: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire(monkeypatch)
    asked = Asked()
    view = GraphView(ring(1), expand=asked, expand_cap=7)
    async with displayed(view, chromium) as screen:
        x, y = await screen.position("Person:0")
        await screen.page.mouse.dblclick(x, y)
        await screen.page.locator(".status", has_text="8 nodes").wait_for()
        await screen.page.locator(
            ".notice", has_text="7 neighbors were added, and there are more"
        ).wait_for()
        await screen.settled()
        await screen.click("Person:0")
        await screen.page.get_by_text("Expand neighbors").click()
        await screen.page.locator(".status", has_text="15 nodes").wait_for()
    assert [node_id for node_id, _ in asked.calls] == ["Person:0", "Person:0"]


async def test_neighbors_that_do_not_come_are_told_where_they_were_asked_for(
    chromium: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire(monkeypatch)

    def gone(node_id: str, limit: int) -> Neighborhood:
        raise ConnectionError("the graph is <b>gone</b>")

    view = GraphView(ring(1), expand=gone)
    async with displayed(view, chromium) as screen:
        await screen.page.mouse.dblclick(*await screen.position("Person:0"))
        notice = screen.page.locator(
            ".notice", has_text="Could not load the neighbors: the graph is <b>gone</b>"
        )
        await notice.wait_for()
