"""A table that is also opened by its folder: the hint, and the metadata that it names, stay."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from penstock.maintenance.actions.model import Ended
from tests.maintenance.tables import LATER, Stand


def metadata_folder(stand: Stand) -> Path:
    return Path(stand.table.location().removeprefix("file://")) / "metadata"


@pytest.mark.parametrize(
    ("hint", "file"),
    [
        ("5", "v5.metadata.json"),
        ("v5", "v5.metadata.json"),
        ("v5.metadata.json", "v5.metadata.json"),
        ("5\n", "v5.metadata.json"),
    ],
)
def test_they_are_no_orphans(stand: Stand, hint: str, file: str) -> None:
    stand.create(files=4)
    folder = metadata_folder(stand)
    shutil.copy(stand.table.metadata_location.removeprefix("file://"), folder / file)
    (folder / "version-hint.text").write_text(hint)
    (folder / "v4.metadata.json").write_text("{}")
    done = stand.run("remove_orphan_files", now=lambda: LATER)
    assert (done.status, done.deleted_files) == (Ended.COMPLETED, 1)
    assert not (folder / "v4.metadata.json").exists()
    assert (folder / "version-hint.text").read_text() == hint
    assert (folder / file).exists()


def test_a_reader_of_the_folder_still_finds_the_table(stand: Stand) -> None:
    stand.create(files=4)
    location, folder = stand.table.location(), metadata_folder(stand)
    shutil.copy(stand.table.metadata_location.removeprefix("file://"), folder / "v5.metadata.json")
    (folder / "version-hint.text").write_text("5")
    stand.run("remove_orphan_files", now=lambda: LATER)
    assert StaticTable.from_metadata(location).scan().to_arrow().num_rows == 40


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"../../elsewhere", b"x" * 100_000])
def test_a_hint_that_names_nothing_stays_and_protects_nothing(stand: Stand, content: bytes) -> None:
    stand.create(files=4)
    folder = metadata_folder(stand)
    (folder / "version-hint.text").write_bytes(content)
    (folder / "v4.metadata.json").write_text("{}")
    done = stand.run("remove_orphan_files", now=lambda: LATER)
    assert (done.status, done.deleted_files) == (Ended.COMPLETED, 1)
    assert (folder / "version-hint.text").read_bytes() == content
