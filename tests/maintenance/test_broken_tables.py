"""Tables whose metadata or files are broken: every action ends in words that name what is wrong, or
does its work."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import write_manifest_list

from penstock.maintenance.actions.model import Ended
from penstock.maintenance.tables.reading.content import ManifestReader
from tests.maintenance.tables import LATER, SCHEMA, rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.maintenance.actions.model import Outcome
    from tests.maintenance.tables import SampleTable

ACTIONS = {
    "data": {
        "name": "rewrite_data_files",
        "force": True,
        "rewrite_all": True,
        "min_input_files": 2,
    },
    "deletes": {"name": "rewrite_position_delete_files", "min_input_files": 1},
    "manifests": {"name": "rewrite_manifests"},
    "expire": {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1},
    "orphans": {"name": "remove_orphan_files"},
}
REWRITES = ["data", "deletes", "manifests"]


def worn(sample: SampleTable) -> SampleTable:
    sample.create(files=3)
    sample.delete([1])
    sample.delete([11])
    return sample


def edit(sample: SampleTable, change: Callable[[dict], None]) -> None:
    """Change the table's metadata file, as a tool that knows no better would."""
    path = Path(sample.table.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def act(sample: SampleTable, action: str) -> Outcome:
    return sample.run(ACTIONS[action], now=lambda: LATER)


def delete_file(sample: SampleTable) -> Path:
    [first, *_] = ManifestReader(sample.table.io).content(sample.table.current_snapshot()).deletes
    return Path(first.data_file.file_path.removeprefix("file://"))


@pytest.mark.parametrize("action", ["data", "deletes"])
@pytest.mark.parametrize("damage", ["cut short", "empty", "other columns"])
def test_a_broken_delete_file_is_named(sample: SampleTable, action: str, damage: str) -> None:
    path = delete_file(worn(sample))
    if damage == "other columns":
        pq.write_table(pa.table({"x": [1]}), path)
    else:
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] if damage == "cut short" else b"")
    outcome = act(sample, action)
    assert outcome.status is Ended.FAILED
    assert path.name in outcome.message


@pytest.mark.parametrize("action", ACTIONS)
def test_a_broken_manifest_list_is_named(sample: SampleTable, action: str) -> None:
    path = Path(worn(sample).table.current_snapshot().manifest_list.removeprefix("file://"))
    path.write_bytes(path.read_bytes()[:-20])
    outcome = act(sample, action)
    assert outcome.status is Ended.FAILED
    assert path.name in outcome.message


@pytest.mark.parametrize("codec", ["uncompressed", "zstd", "snappy", "GZIP", "of a later release"])
@pytest.mark.parametrize("action", REWRITES)
def test_manifests_are_written_whatever_their_compression_is_called(
    sample: SampleTable, action: str, codec: str
) -> None:
    worn(sample)
    edit(
        sample,
        lambda document: document["properties"].update({"write.avro.compression-codec": codec}),
    )
    before = sample.ids()
    assert act(sample, action).status is Ended.COMPLETED
    assert sample.ids() == before


@pytest.mark.parametrize("action", REWRITES)
@pytest.mark.parametrize("records", ["many", "²", "9" * 5_000], ids=["word", "square", "long"])
def test_totals_that_are_no_numbers_are_left_out(
    sample: SampleTable, action: str, records: str
) -> None:
    worn(sample)

    def change(document: dict) -> None:
        document["snapshots"][-1]["summary"].update(
            {"total-records": records, "total-data-files": "3.0"}
        )

    edit(sample, change)
    before = sample.ids()
    assert act(sample, action).status is Ended.COMPLETED
    assert sample.ids() == before
    summary = sample.table.current_snapshot().summary.additional_properties
    assert "total-records" not in summary
    assert "total-data-files" not in summary


@pytest.mark.parametrize("action", ACTIONS)
def test_a_name_mapping_that_is_none_is_refused(sample: SampleTable, action: str) -> None:
    worn(sample)
    edit(
        sample, lambda document: document["properties"].update({"schema.name-mapping.default": "{"})
    )
    outcome = act(sample, action)
    assert outcome.status is Ended.REFUSED
    assert "schema.name-mapping.default" in outcome.message


@pytest.mark.parametrize("action", ACTIONS)
def test_code_that_a_property_names_is_not_loaded(
    sample: SampleTable, action: str, tmp_path: Path
) -> None:
    worn(sample)
    (tmp_path / "module_of_a_table.py").write_text("raise AssertionError('it was loaded')")
    sys.path.insert(0, str(tmp_path))
    try:
        name = "write.py-location-provider.impl"
        edit(
            sample,
            lambda document: document["properties"].update({name: "module_of_a_table.Provider"}),
        )
        outcome = act(sample, action)
    finally:
        sys.path.remove(str(tmp_path))
    assert "module_of_a_table" not in sys.modules
    assert outcome.status is Ended.REFUSED
    assert name in outcome.message


@pytest.mark.parametrize("action", ACTIONS)
def test_a_partition_transform_of_a_later_release_is_refused(
    sample: SampleTable, action: str
) -> None:
    sample.create(files=3, partitioned=True)

    def change(document: dict) -> None:
        for spec in document["partition-specs"]:
            for field in spec["fields"]:
                field["transform"] = "future[4]"

    edit(sample, change)
    outcome = act(sample, action)
    assert outcome.status is Ended.REFUSED
    assert "'day' has a transform" in outcome.message


@pytest.mark.parametrize("action", ["data", "manifests"])
def test_lists_of_the_first_version_without_counts_are_given_them(
    sample: SampleTable, action: str
) -> None:
    sample.catalog.create_namespace_if_not_exists("shop")
    sample.catalog.create_table(sample.name, SCHEMA, properties={"format-version": "1"})
    for n in range(3):
        sample.table.append(rows(10 * n, 10))
    drop_counts(sample)
    with sample.table.transaction() as transaction:
        transaction.upgrade_table_version(2)
    before = sample.ids()
    assert act(sample, action).status is Ended.COMPLETED
    assert sample.ids() == before
    snapshot = sample.table.current_snapshot()
    for manifest in snapshot.manifests(sample.table.io):
        entries = manifest.fetch_manifest_entry(sample.table.io, discard_deleted=True)
        assert (manifest.added_files_count or 0) + (manifest.existing_files_count or 0) == len(
            entries
        )


def drop_counts(sample: SampleTable) -> None:
    """Write the manifest lists again as early writers of version 1 did."""
    io = sample.table.io
    for snapshot in sample.table.metadata.snapshots:
        manifests = snapshot.manifests(io)
        for manifest in manifests:
            for place in range(7, 13):
                manifest[place] = None
        Path(snapshot.manifest_list.removeprefix("file://")).unlink()
        with write_manifest_list(
            format_version=1,
            output_file=io.new_output(snapshot.manifest_list),
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_number=None,
            avro_compression="gzip",
        ) as writer:
            writer.add_manifests(manifests)


@pytest.mark.parametrize("action", ["data", "deletes"])
def test_a_delete_without_a_position_is_named(sample: SampleTable, action: str) -> None:
    broken = delete_file(worn(sample))
    deletes = pq.read_table(broken)
    nullable = pa.schema([("file_path", pa.string()), ("pos", pa.int64())])
    paths = deletes["file_path"].to_pylist()
    pq.write_table(pa.table({"file_path": paths, "pos": [None] * len(paths)}, nullable), broken)
    done = act(sample, action)
    assert (done.status, broken.name in done.message) == (Ended.FAILED, True), done.message
