"""Avro files cut at every byte: nothing is decoded that is not whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from penstock.maintenance.errors import TableUnreadable
from penstock.maintenance.tables.reading.avro_check import read_avro
from tests.maintenance.tables import SampleTable, rows

SYNC = 16


@pytest.fixture
def manifest(sample: SampleTable) -> bytes:
    """A manifest of several blocks, as PyIceberg writes it."""
    sample.create(files=0, partitioned=True)
    sample.table.append(rows(0, 30))
    snapshot = sample.table.current_snapshot()
    assert snapshot is not None
    [listed] = snapshot.manifests(sample.table.io)
    return Path(listed.manifest_path.removeprefix("file://")).read_bytes()


def is_read(folder: Path, content: bytes) -> bool:
    path = folder / "m.avro"
    path.write_bytes(content)
    try:
        read_avro(PyArrowFileIO(), str(path))
    except TableUnreadable as error:
        return "m.avro" not in error.message
    return True


def test_a_file_that_is_cut_anywhere_but_behind_a_block_is_refused(
    manifest: bytes, tmp_path: Path
) -> None:
    sync = manifest[-SYNC:]
    ends = {at for at in range(SYNC, len(manifest) + 1) if manifest[at - SYNC : at] == sync}
    assert len(ends) > 2
    read = {at for at in range(len(manifest) + 1) if is_read(tmp_path, manifest[:at])}
    assert read == ends


def test_other_bytes_behind_the_last_block_or_between_blocks_are_refused(
    manifest: bytes, tmp_path: Path
) -> None:
    sync = manifest[-SYNC:]
    other = bytes(byte ^ 1 for byte in sync)
    assert not is_read(tmp_path, manifest + b"\0")
    assert not is_read(tmp_path, manifest[:-SYNC] + other)
    assert not is_read(tmp_path, b"Abj\x01" + manifest[4:])


def test_a_size_that_is_negative_or_endless_is_refused(manifest: bytes, tmp_path: Path) -> None:
    assert not is_read(tmp_path, manifest + b"\x02\x01" + manifest[-SYNC:])
    assert not is_read(tmp_path, manifest + b"\x02" + b"\xff" * 40 + manifest[-SYNC:])


def test_an_empty_block_and_metadata_with_their_size_are_read(tmp_path: Path) -> None:
    sync = bytes(range(SYNC))
    pairs = b"\x02a\x02b"
    sized = b"Obj\x01" + b"\x01" + bytes([2 * len(pairs)]) + pairs + b"\0" + sync
    assert is_read(tmp_path, sized)
    assert is_read(tmp_path, sized + b"\0\0" + sync)
