"""Pages of drawings in a real Chromium, without a network."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from penstock.widget.drawing import Drawing
from penstock.widget.page import assets, fragment, page
from tests.widget.graphs import knows, people, person, ring
from tests.widget.screen import opened
from tests.widget.test_page import HOSTILE

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser

    from tests.widget.screen import Point, Screen

BLUE, ORANGE = "#3b7dd8", "#e8743b"
COLDEST, HOTTEST = "#4158c7", "#e8632b"
GROUND, FADED, DARK_GROUND = "#ffffff", "#e6e9ef", "#12161d"
PAIR = Drawing.from_elements(people(2), [knows(0, 0, 1)])


def _mixed(number: int) -> Drawing:
    """Persons and, every third, a city; ranks from 0 to 1."""
    nodes = [
        person(i, name=f"P{i}", rank=i / (number - 1)) | ({"_label": "City"} if i % 3 == 2 else {})
        for i in range(number)
    ]
    return Drawing.from_elements(nodes, [knows(i, i, (i + 1) % number) for i in range(number)])


async def test_nodes_are_drawn_in_the_colour_of_their_label_and_nothing_is_fetched(
    screen: Screen, tmp_path: Path
) -> None:
    drawing = _mixed(12)
    await screen.show(tmp_path / "a.html", page(drawing, title="Twelve"))
    points = [await screen.position(node.id) for node in drawing.nodes]
    expected = [ORANGE if node.label == "City" else BLUE for node in drawing.nodes]
    assert await screen.colours(points) == expected
    assert await screen.colours([(450, 590)]) == await screen.colours([(400, 590)])
    assert screen.asked == [(tmp_path / "a.html").as_uri()]
    legend = await screen.page.locator(".legend").inner_text()
    assert legend.split() == ["Label", "Person", "8", "City", "4"]
    assert await screen.page.locator(".status").inner_text() == "12 nodes, 12 edges"


async def test_nodes_do_not_lie_over_each_other(screen: Screen, tmp_path: Path) -> None:
    drawing = Drawing.from_elements(people(40), [knows(i, 0, i) for i in range(1, 40)])
    await screen.show(tmp_path / "a.html", page(drawing, title="Star"))
    points = [await screen.position(node.id) for node in drawing.nodes]
    nearest = min(math.dist(a, b) for i, a in enumerate(points) for b in points[:i])
    assert nearest > 10


async def test_colours_and_sizes_follow_a_score(screen: Screen, tmp_path: Path) -> None:
    drawing = _mixed(12)
    await screen.show(tmp_path / "a.html", page(drawing, title="Scores", colour_by="rank"))
    ends = [await screen.position("Person:0"), await screen.position("Person:11")]
    assert await screen.colours(ends) == [COLDEST, HOTTEST]
    assert "rank" in await screen.page.locator(".legend").inner_text()
    beside = [(x + 13, y) for x, y in ends]
    await screen.page.get_by_label("Size by").select_option("rank")
    small, large = await screen.colours(beside)
    assert large == HOTTEST
    assert small != COLDEST
    await screen.page.get_by_label("Colour by").select_option("label")
    assert await screen.colours(ends) == [BLUE, ORANGE]


async def test_buttons_and_wheel_zoom_and_fit_comes_back(screen: Screen, tmp_path: Path) -> None:
    await screen.show(tmp_path / "a.html", page(ring(8), title="Ring"))
    await screen.page.get_by_label("Zoom in").click()
    await screen.holds("view.zoomRatio < 0.7")
    await screen.page.get_by_label("Show everything").click()
    await screen.holds("view.zoomRatio === 1")
    await screen.page.mouse.move(450, 300)
    await screen.page.mouse.wheel(0, 300)
    await screen.holds("view.zoomRatio > 1.1")


async def test_a_node_is_dragged_and_that_is_no_selection(screen: Screen, tmp_path: Path) -> None:
    await screen.show(tmp_path / "a.html", page(ring(8), title="Ring"))
    x, y = await screen.position("Person:0")
    await screen.page.mouse.move(x, y)
    await screen.page.mouse.down()
    await screen.page.mouse.move(x + 30, y + 20, steps=4)
    await screen.page.mouse.move(x + 60, y + 40, steps=4)
    await screen.page.mouse.up()
    moved = await screen.position("Person:0")
    assert math.dist(moved, (x + 60, y + 40)) < 3
    assert await screen.page.locator(".details").is_hidden()


async def test_search_fades_what_does_not_match_and_enter_selects_what_does(
    screen: Screen, tmp_path: Path
) -> None:
    await screen.show(tmp_path / "a.html", page(ring(8), title="Ring"))
    await screen.page.get_by_label("Search nodes").fill("p3")
    assert await screen.page.locator(".found").inner_text() == "1 found"
    matching, other = await screen.colours(
        [await screen.position("Person:3"), await screen.position("Person:4")]
    )
    assert (matching, other) == (BLUE, FADED)
    await screen.page.keyboard.press("Enter")
    assert await screen.page.locator(".details h2").inner_text() == "P3"
    await screen.page.get_by_label("Search nodes").fill("nobody")
    assert await screen.page.locator(".found").inner_text() == "0 found"


async def test_clicks_select_and_shift_adds_and_escape_clears(
    screen: Screen, tmp_path: Path
) -> None:
    await screen.show(tmp_path / "a.html", page(ring(8), title="Ring"))
    details = screen.page.locator(".details")
    await screen.click("Person:2")
    text = await details.inner_text()
    assert "Person:2" in text
    assert "→ KNOWS" in text
    assert "Expand" not in text
    await screen.page.keyboard.down("Shift")
    await screen.click("Person:5")
    await screen.page.keyboard.up("Shift")
    assert await details.locator("h2").inner_text() == "2 nodes selected"
    await screen.page.get_by_label("Search nodes").focus()
    await screen.page.keyboard.press("Escape")
    assert await details.is_hidden()


async def test_a_click_on_an_edge_tells_of_it(screen: Screen, tmp_path: Path) -> None:
    drawing = Drawing.from_elements(people(2), [knows(0, 0, 1, since=1840)])
    await screen.show(tmp_path / "a.html", page(drawing, title="Edge"))
    (ax, ay), (bx, by) = await screen.position("Person:0"), await screen.position("Person:1")
    await screen.page.mouse.click((ax + bx) / 2, (ay + by) / 2)
    text = await screen.page.locator(".details").inner_text()
    assert text.split() == ["×", "KNOWS", "from", "P0", "to", "P1", "since", "1840"]


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_is_text(screen: Screen, tmp_path: Path, text: str) -> None:
    nodes = [person(0, name=text, **{text: text}) | {"_label": text}, person(1)]
    drawing = Drawing.from_elements(nodes, [knows(0, 0, 1) | {"_type": text}])
    await screen.show(tmp_path / "a.html", page(drawing, title=text, colour_by=text))
    screen.page.on("dialog", lambda dialog: screen.faults.append(dialog.message))
    await screen.click("Person:0")
    assert await screen.page.locator(".details h2").text_content() == text
    assert await screen.page.locator("img").count() == 0
    assert await screen.page.locator("script").count() == 2
    assert await screen.page.locator("h1").text_content() == text


async def test_an_empty_result_teaches(screen: Screen, tmp_path: Path) -> None:
    await screen.show(tmp_path / "a.html", page(Drawing(), title="Empty"))
    assert "MATCH (a)-[r]->(b)" in await screen.page.locator(".empty").inner_text()
    assert await screen.page.locator(".legend").is_hidden()


async def test_a_lone_node_is_in_the_middle(screen: Screen, tmp_path: Path) -> None:
    await screen.show(tmp_path / "a.html", page(Drawing.from_elements(people(1)), title="One"))
    x, y = await screen.position("Person:0")
    assert math.dist((x, y), (450, 330)) < 60
    assert await screen.colours([(x, y)]) == [BLUE]


async def test_what_was_left_out_is_said(screen: Screen, tmp_path: Path) -> None:
    drawing = Drawing.from_elements(
        people(1_001), [knows(i, 0, i) for i in range(1, 4)], most_nodes=2
    )
    await screen.show(tmp_path / "a.html", page(drawing, title="Large"))
    text = await screen.page.locator(".status").inner_text()
    assert text == "2 nodes, 1 edge drawn; left out: 999 nodes and 2 edges"


def _across(a: Point, b: Point, *, reach: int = 200) -> list[Point]:
    """Points on the line that cuts the one from `a` to `b` in the middle."""
    length = math.dist(a, b)
    dx, dy = (b[1] - a[1]) / length, (a[0] - b[0]) / length
    middle = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    return [(middle[0] + dx * step, middle[1] + dy * step) for step in range(-reach, reach)]


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_parallel_edges_bow_apart(screen: Screen, tmp_path: Path, number: int) -> None:
    edges = [knows(i, i % 2, (i + 1) % 2) | {"_type": ""} for i in range(number)]
    await screen.show(
        tmp_path / "a.html", page(Drawing.from_elements(people(2), edges), title="Parallel")
    )
    line = await screen.colours(
        _across(await screen.position("Person:0"), await screen.position("Person:1"))
    )
    crossed = [colour != GROUND for colour in line]
    assert sum(now and not before for before, now in pairwise(crossed)) == number


async def test_an_edge_to_itself_is_a_loop(screen: Screen, tmp_path: Path) -> None:
    drawing = Drawing.from_elements(people(1), [knows(0, 0, 0)])
    await screen.show(tmp_path / "a.html", page(drawing, title="Loop"))
    x, y = await screen.position("Person:0")
    above = await screen.colours([(x, y - step) for step in range(20, 60)])
    assert set(above) > {GROUND}


async def test_the_picture_is_saved_as_it_is_seen(screen: Screen, tmp_path: Path) -> None:
    await screen.show(tmp_path / "a.html", page(ring(8), title="Ring"))
    async with screen.page.expect_download() as download:
        await screen.page.get_by_label("Save as a picture").click()
    picture = tmp_path / "graph.png"
    await (await download.value).save_as(picture)
    seen = await screen.colours_in(
        picture.read_bytes(), [(x, y) for x in range(0, 600, 5) for y in range(0, 300, 5)]
    )
    assert {GROUND, BLUE} <= set(seen)


async def test_a_dark_reader_gets_a_dark_page(chromium: Browser, tmp_path: Path) -> None:
    async with opened(chromium, color_scheme="dark") as screen:
        await screen.show(tmp_path / "a.html", page(PAIR, title="Dark"))
        assert await screen.colours([(450, 120)]) == [DARK_GROUND]


async def test_a_page_that_scrolls_keeps_its_wheel_until_the_drawing_is_clicked(
    screen: Screen, tmp_path: Path
) -> None:
    body = "".join(fragment(ring(5), height=500) for _ in range(3))
    await screen.show(tmp_path / "a.html", f"<!doctype html><meta charset=utf-8>{body}{assets()}")
    assert await screen.page.locator(".penstock-graph").count() == 3
    await screen.page.mouse.move(450, 250)
    await screen.page.mouse.wheel(0, 40)
    await screen.page.locator(".hint").first.wait_for(state="visible")
    assert await screen.zoom() == 1
    await screen.page.mouse.click(300, 150)
    await screen.page.mouse.wheel(0, 100)
    await screen.holds("view.zoomRatio > 1")
