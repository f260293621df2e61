"""Object keys stay in their folder, and are built of ids alone."""

from __future__ import annotations

import posixpath
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.guard.errors import NameRefused
from penstock.guard.path import object_key, prefix, safe_segment
from tests.guard.cases import lines

HOSTILE = [*lines("paths.txt"), ""]
OWNER = UUID("0f8fad5b-d9cb-469f-a165-70867728950e")


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(set(HOSTILE)) >= 80


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_hostile_name_is_refused_alone_and_inside_a_key(name: str) -> None:
    with pytest.raises(NameRefused):
        safe_segment(name)
    with pytest.raises(NameRefused):
        object_key("snapshots", name, "part-0.parquet")
    with pytest.raises(NameRefused):
        prefix("snapshots", name)


PLAIN = (
    "a A1 _tmp part-0.parquet v12 Customer KNOWS a@b.example a+1@b.example day=2024 2024-01-31"
    " a.b.c console com"
)


@pytest.mark.parametrize("name", PLAIN.split())
def test_a_plain_name_is_itself(name: str) -> None:
    assert safe_segment(name) == name


def test_a_name_may_be_128_characters_long_and_not_one_more() -> None:
    assert safe_segment("x" * 128)
    with pytest.raises(NameRefused):
        safe_segment("x" * 129)


def test_a_key_is_made_of_names_numbers_and_uuids() -> None:
    assert object_key("snapshots", OWNER, 7, "nodes", "Customer", "part-0.parquet") == (
        f"snapshots/{OWNER}/7/nodes/Customer/part-0.parquet"
    )


def test_a_prefix_ends_with_a_slash_so_that_one_does_not_cover_ten() -> None:
    assert prefix("snapshots", 1) == "snapshots/1/"
    assert not prefix("snapshots", 10).startswith(prefix("snapshots", 1))


def test_a_key_of_nothing_or_of_a_negative_number_is_refused() -> None:
    with pytest.raises(NameRefused):
        object_key()
    with pytest.raises(NameRefused):
        prefix()
    with pytest.raises(NameRefused):
        object_key("snapshots", -1)


@given(st.lists(st.text(max_size=12), min_size=1, max_size=4))
def test_whatever_passes_stays_below_its_root(names: list[str]) -> None:
    try:
        key = object_key(*names)
    except NameRefused:
        return
    assert key.split("/") == names
    assert posixpath.normpath(f"/root/{key}") == f"/root/{key}"
    assert key.isascii()
    assert key.isprintable()
