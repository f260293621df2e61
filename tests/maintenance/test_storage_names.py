"""Names of files: what engines write on disk, and that two spellings of one file are one."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import IdentityTransform

from penstock.maintenance.actions.model import Ended
from penstock.maintenance.tables.assessment.facts import look
from penstock.maintenance.tables.assessment.tier import Tier
from penstock.maintenance.tables.ownership.storage import Locator, StoragePath, TableLocation
from tests.maintenance.tables import BY_DAY, COMPACT, LATER, SCHEMA, SampleTable, rows

VALUES = [
    "a b",
    "a/b",
    "50%",
    "c:d",
    "e+f",
    "ünï",
    "g=h",
    "i#j",
    "k?l",
    "..",
    ".",
    "",
    "a%20b",
    "%2F",
    "~x",
    "*y",
]
KEEP_ONE = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}
LOCAL = Locator({})


@pytest.mark.parametrize(
    "location",
    [
        "/a/b",
        "file:/a/b",
        "file:///a/b",
        "file:///a/b/",
        "FILE:///a/b",
        "file://localhost/a/b",
        "/a//b",
        "/a/./c/../b",
    ],
)
def test_one_file_has_one_name(location: str) -> None:
    assert LOCAL.resolve(location) == StoragePath("file:", "/a/b")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3a://bucket/x", "s3://bucket/x/"),
        ("s3n://bucket//w//x", "s3://bucket/w/x"),
        ("gcs://bucket/x", "gs://bucket/x"),
        ("wasbs://c@account.blob.core.windows.net/x", "abfss://c@account.dfs.core.windows.net/x"),
        ("hdfs:///w/x", "hdfs://namenode:8020/w/x"),
    ],
)
def test_engines_call_one_store_by_several_names(one: str, other: str) -> None:
    assert LOCAL.resolve(one) == LOCAL.resolve(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://bucket/a%20b", "s3://bucket/a b"),
        ("file:///a%20b", "file:///a b"),
        ("file:///a#1", "file:///a#2"),
        ("file:///a?1", "file:///a"),
        ("s3://one/x", "s3://other/x"),
    ],
)
def test_other_names_are_other_files(one: str, other: str) -> None:
    assert LOCAL.resolve(one) != LOCAL.resolve(other)


def test_a_location_without_a_scheme_is_where_the_catalog_says() -> None:
    locator = Locator({"DEFAULT_SCHEME": "hdfs", "DEFAULT_NETLOC": "namenode"})
    assert locator.resolve("/w/x") == locator.resolve("hdfs://namenode/w/x")


def test_a_store_contains_what_lies_in_it_and_no_name_that_only_begins_alike() -> None:
    table = LOCAL.resolve("s3://bucket/w/t")
    assert table.contains(LOCAL.resolve("s3a://bucket/w/t/data/x"))
    assert not table.overlaps(LOCAL.resolve("s3://bucket/w/t2"))
    assert LOCAL.resolve("s3://bucket/").contains(table)
    assert [parent.path for parent in table.parents()] == ["/w", ""]


def partitioned(sample: SampleTable) -> SampleTable:
    sample.catalog.create_namespace_if_not_exists("shop")
    sample.catalog.create_table(sample.name, SCHEMA, partition_spec=BY_DAY)
    for number, value in enumerate(VALUES):
        for start in (2 * number, 2 * number + 1):
            sample.table.append(rows(start, 1, day=value))
    return sample


def folder_of(sample: SampleTable) -> Path:
    return Path(sample.table.location().removeprefix("file://"))


def named_files(sample: SampleTable) -> set[str]:
    paths = sample.table.inspect.files()["file_path"].to_pylist()
    return {path.removeprefix("file://") for path in paths}


def age(sample: SampleTable) -> None:
    at = (datetime.now(UTC) - timedelta(days=4)).timestamp()
    for path in folder_of(sample).rglob("*"):
        os.utime(path, (at, at))


def test_what_is_named_is_what_lies_on_disk_in_every_partition(sample: SampleTable) -> None:
    """PyIceberg percent-encodes partition values, and the encoded text is the folder's name."""
    partitioned(sample)
    named = named_files(sample)
    assert named == {str(path) for path in folder_of(sample).rglob("*.parquet")}
    assert sum("%" in path for path in named) >= 16


def test_no_file_of_an_odd_partition_is_taken_for_an_orphan(sample: SampleTable) -> None:
    partitioned(sample)
    before = sample.all_rows()
    age(sample)
    junk = folder_of(sample) / "data" / "day=a%2Fb" / "junk%20.parquet"
    junk.write_bytes(b"x")
    os.utime(junk, (0, 0))
    facts = look(sample.table, Tier.STORAGE, now=datetime.now(UTC))
    assert (facts.orphan_files, facts.orphan_bytes) == (1, 1)
    assert sample.plan("remove_orphan_files").files == (str(junk),)
    done = sample.run("remove_orphan_files")
    assert (done.status, done.deleted_files) == (Ended.COMPLETED, 1), done.message
    assert sample.all_rows() == before


def test_odd_partitions_are_rewritten_and_expired_and_nothing_is_left(sample: SampleTable) -> None:
    partitioned(sample)
    before = sample.all_rows()
    assert sample.run({**COMPACT, "min_input_files": 2}).status is Ended.COMPLETED
    done = sample.run(KEEP_ONE, now=lambda: LATER)
    assert (done.status, done.after["snapshots"]) == (Ended.COMPLETED, 1)
    assert sample.all_rows() == before
    named = named_files(sample)
    assert named == {str(path) for path in folder_of(sample).rglob("*.parquet")}


def test_a_percent_sign_in_the_location_is_taken_as_it_is(
    sample: SampleTable, tmp_path: Path
) -> None:
    sample.catalog.create_namespace("shop")
    sample.catalog.create_table(sample.name, SCHEMA, location=f"file://{tmp_path}/odd%20 place/t")
    for start in range(6):
        sample.append(start * 10, 10)
    age(sample)
    assert sample.run("remove_orphan_files").status is Ended.NOTHING_TO_DO
    assert len(sample.ids()) == 60


def test_a_file_that_is_named_by_an_encoded_uri_is_kept_too(sample: SampleTable) -> None:
    sample.create()
    location = TableLocation(sample.table)
    name = f"file://{location.path}/data/a%20b%2Bc.parquet"
    assert f"{location.path}/data/a b+c.parquet" in location.protected([name])
    assert location.missing([name], {f"{location.path}/data/a b+c.parquet"}) == []
    assert location.missing([name], {f"{location.path}/data/other.parquet"}) == [name]


@pytest.mark.parametrize("suffix", ["/", "//", "/./", "/../t"])
def test_the_spelling_of_a_location_does_not_matter(
    sample: SampleTable,
    tmp_path: Path,
    suffix: str,
) -> None:
    sample.catalog.create_namespace("shop")
    (tmp_path / "w" / "t").mkdir(parents=True)
    sample.catalog.create_table(sample.name, SCHEMA, location=f"file:{tmp_path}/w/t{suffix}")
    for start in range(6):
        sample.append(start * 10, 10)
    real = tmp_path / "w" / "t"
    junk = real / "data" / "junk"
    junk.write_bytes(b"x")
    for path in real.rglob("*"):
        os.utime(path, (0, 0))
    assert sample.plan("remove_orphan_files").files == (str(junk),)
    done = sample.run("remove_orphan_files")
    assert (done.status, done.deleted_files) == (Ended.COMPLETED, 1), done.message
    assert not junk.exists()
    assert len(sample.ids()) == 60


def test_files_behind_symbolic_links_are_never_orphans(sample: SampleTable, tmp_path: Path) -> None:
    """The data lies elsewhere and is named there; the location shows it by a link, and one that
    goes in circles.
    """
    (tmp_path / "disk").mkdir()
    sample.create(**{"write.data.path": f"file://{tmp_path}/disk"})
    root = folder_of(sample)
    (root / "data").symlink_to(tmp_path / "disk")
    (root / "circle").symlink_to(root)
    (tmp_path / "disk" / "also-elsewhere.parquet").write_bytes(b"x")
    for path in (*root.rglob("*"), *(tmp_path / "disk").rglob("*")):
        os.utime(path, (0, 0))
    done = sample.run("remove_orphan_files")
    assert (done.status, done.deleted_files) == (Ended.NOTHING_TO_DO, 0), done.message
    assert len(sample.ids()) == 60
    assert len(TableLocation(sample.table).files()) == len(list((root / "metadata").iterdir()))


def test_a_table_whose_location_is_reached_by_a_link_is_tidied_where_it_is(
    sample: SampleTable,
    tmp_path: Path,
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    sample.catalog.create_namespace("shop")
    sample.catalog.create_table(sample.name, SCHEMA, location=f"file://{tmp_path}/link/t")
    for start in range(6):
        sample.append(start * 10, 10)
    junk = tmp_path / "real" / "t" / "data" / "junk"
    junk.write_bytes(b"x")
    for path in (tmp_path / "real").rglob("*"):
        os.utime(path, (0, 0))
    assert sample.run("remove_orphan_files").deleted_files == 1
    assert len(sample.ids()) == 60


def test_a_location_without_a_folder_has_no_orphans(sample: SampleTable, tmp_path: Path) -> None:
    sample.catalog.create_namespace("shop")
    elsewhere = {
        "write.metadata.path": f"file://{tmp_path}/meta",
        "write.data.path": f"file://{tmp_path}/data",
    }
    nowhere = f"file://{tmp_path}/nowhere"
    sample.catalog.create_table(sample.name, SCHEMA, location=nowhere, properties=elsewhere)
    sample.append(0, 10)
    assert sample.run("remove_orphan_files").status is Ended.NOTHING_TO_DO
    assert sample.plan("remove_orphan_files").status is Ended.NOTHING_TO_DO
    assert look(sample.table, Tier.STORAGE, now=datetime.now(UTC)).orphan_files == 0


def test_a_table_without_snapshots_has_nothing_to_do(sample: SampleTable) -> None:
    sample.create(files=0)
    for action in (
        KEEP_ONE,
        COMPACT,
        "rewrite_manifests",
        "rewrite_position_delete_files",
        "remove_orphan_files",
    ):
        done = sample.run(action, now=lambda: LATER)
        assert done.status is Ended.NOTHING_TO_DO, (action, done.message)
    assert sample.ids() == []


def test_what_other_tools_keep_apart_is_left_to_them(sample: SampleTable) -> None:
    """As with Spark, names that begin with `_` or `.` are hidden."""
    sample.create(files=8)
    root = folder_of(sample)
    hidden = [root / "_delta_log" / "0.json", root / "data" / ".hoodie" / "x", root / "_SUCCESS"]
    shown = [root / "data" / "x_y" / "z", root / "datum"]
    for path in (*hidden, *shown):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    age(sample)
    assert look(sample.table, Tier.STORAGE, now=datetime.now(UTC)).orphan_files == 2
    assert sample.run("remove_orphan_files").deleted_files == 2
    assert [path.exists() for path in (*hidden, *shown)] == [True] * 3 + [False] * 2


def test_a_partition_whose_name_begins_like_a_hidden_one_is_tidied(sample: SampleTable) -> None:
    field = PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="_day")
    sample.catalog.create_namespace("shop")
    sample.catalog.create_table(sample.name, SCHEMA, partition_spec=PartitionSpec(field))
    for start in range(8):
        sample.append(start * 10, 10)
    junk = folder_of(sample) / "data" / "_day=d0" / "junk"
    junk.write_bytes(b"x")
    age(sample)
    assert sample.plan("remove_orphan_files").files == (str(junk),)
