"""Neighbors come a few at a time, and never more than a drawing holds."""

from __future__ import annotations

import pytest

from penstock.widget.drawing import Drawing
from penstock.widget.expansion import Neighborhood, expanded, wanted
from tests.widget.graphs import knows, people

ALONE = Drawing.from_elements(people(1))


def _around(number: int, *, truncated: bool = False) -> Neighborhood:
    """The first person and `number` acquaintances."""
    edges = [knows(i, 0, i) for i in range(1, number + 1)]
    return {"nodes": people(number + 1), "edges": edges, "truncated": truncated}


def test_as_many_as_the_cap_come_and_nothing_is_said() -> None:
    grown = expanded(ALONE, _around(5), cap=5)
    assert (len(grown.drawing.nodes), len(grown.drawing.edges), grown.added, grown.notice) == (
        6,
        5,
        5,
        "",
    )


def test_one_more_than_the_cap_waits_and_it_is_said() -> None:
    grown = expanded(ALONE, _around(6), cap=5)
    assert (len(grown.drawing.nodes), len(grown.drawing.edges), grown.added) == (6, 5, 5)
    assert grown.notice == "5 neighbors were added, and there are more: expand again."


def test_expanding_again_brings_the_next() -> None:
    first = expanded(ALONE, _around(5, truncated=True), cap=5).drawing
    assert wanted(first, "Person:0", 5) == 11
    again = expanded(first, _around(8), cap=5)
    assert (len(again.drawing.nodes), again.added, again.notice) == (9, 3, "")


def test_nothing_new_is_said() -> None:
    full = expanded(ALONE, _around(2), cap=5).drawing
    assert expanded(full, _around(2), cap=5).notice == "All its neighbors are drawn."


@pytest.mark.parametrize(("most", "added"), [(6, 5), (4, 3), (1, 0)])
def test_a_full_drawing_takes_no_more(most: int, added: int) -> None:
    grown = expanded(ALONE, _around(6), cap=6, most_nodes=most)
    assert (len(grown.drawing.nodes), grown.added) == (most, added)
    assert f"full at {most} nodes" in grown.notice


def test_edges_between_what_is_drawn_come_too() -> None:
    drawn = Drawing.from_elements(people(3))
    neighborhood: Neighborhood = {
        "nodes": people(3),
        "edges": [knows(0, 0, 1), knows(1, 1, 2)],
        "truncated": False,
    }
    assert len(expanded(drawn, neighborhood).drawing.edges) == 2
