"""A table that is also opened by its folder: the hint, and the metadata that it names, stay."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from penstock.maintenance.actions.model import Ended
from tests.maintenance.tables import LATER, SampleTable


def metadata_folder(sample: SampleTable) -> Path:
    return Path(sample.table.location().removeprefix("file://")) / "metadata"


@pytest.mark.parametrize(
    ("hint", "file"),
    [
        ("5", "v5.metadata.json"),
        ("v5", "v5.metadata.json"),
        ("v5.metadata.json", "v5.metadata.json"),
        ("5\n", "v5.metadata.json"),
    ],
)
def test_they_are_no_orphans(sample: SampleTable, hint: str, file: str) -> None:
    sample.create(files=4)
    folder = metadata_folder(sample)
    shutil.copy(sample.table.metadata_location.removeprefix("file://"), folder / file)
    (folder / "version-hint.text").write_text(hint)
    (folder / "v4.metadata.json").write_text("{}")
    done = sample.run("remove_orphan_files", now=lambda: LATER)
    assert (done.status, done.deleted_files) == (Ended.COMPLETED, 1)
    assert not (folder / "v4.metadata.json").exists()
    assert (folder / "version-hint.text").read_text() == hint
    assert (folder / file).exists()


def test_a_reader_of_the_folder_still_finds_the_table(sample: SampleTable) -> None:
    sample.create(files=4)
    location, folder = sample.table.location(), metadata_folder(sample)
    shutil.copy(sample.table.metadata_location.removeprefix("file://"), folder / "v5.metadata.json")
    (folder / "version-hint.text").write_text("5")
    sample.run("remove_orphan_files", now=lambda: LATER)
    assert StaticTable.from_metadata(location).scan().to_arrow().num_rows == 40


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"../../elsewhere", b"x" * 100_000])
def test_a_hint_that_names_nothing_stays_and_protects_nothing(
    sample: SampleTable, content: bytes
) -> None:
    sample.create(files=4)
    folder = metadata_folder(sample)
    (folder / "version-hint.text").write_bytes(content)
    (folder / "v4.metadata.json").write_text("{}")
    done = sample.run("remove_orphan_files", now=lambda: LATER)
    assert (done.status, done.deleted_files) == (Ended.COMPLETED, 1)
    assert (folder / "version-hint.text").read_bytes() == content
