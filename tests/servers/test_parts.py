from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from tests.servers.fetch import PARTS
from tests.servers.parts import Missing, Part, download, new_folder

if TYPE_CHECKING:
    from pathlib import Path


def _absent(file: Path) -> Part:
    return Part(name="a server", present=file.is_file, fetch=file.touch)


def test_a_part_that_is_not_here_fails_with_the_word_to_fetch_it(tmp_path: Path) -> None:
    with pytest.raises(Missing, match=r"a server is not here. Run `make fetch`"):
        _absent(tmp_path / "server").require()


def test_a_fetched_part_is_here(tmp_path: Path) -> None:
    part = _absent(tmp_path / "server")
    part.fetch()
    part.require()


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_each_part_was_fetched_before_the_tests(part: Part) -> None:
    part.require()


def test_a_download_that_is_not_what_it_was_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"something else")
    right = hashlib.sha256(b"something").hexdigest()
    with pytest.raises(Missing, match="is not what it was"):
        download(source.as_uri(), right, tmp_path / "target")


def test_what_was_fetched_in_part_does_not_count(tmp_path: Path) -> None:
    target = tmp_path / "server"

    def fetch_the_first_half() -> None:
        with new_folder(target) as work:
            (work / "first half").touch()
            raise Missing("the rest cannot be had")

    with pytest.raises(Missing):
        fetch_the_first_half()
    assert not target.exists()
    with new_folder(target) as work:
        assert not list(work.iterdir())
        (work / "whole").touch()
    assert [file.name for file in target.iterdir()] == ["whole"]
