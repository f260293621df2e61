"""Tables on a real S3: keys are taken literally, folders do not exist, and what may not be listed
is refused.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from penstock.maintenance.actions.model import Ended
from penstock.maintenance.errors import CatalogUnavailable
from penstock.maintenance.tables.assessment.facts import look
from penstock.maintenance.tables.assessment.tier import Tier
from penstock.maintenance.tables.catalog.catalogs import CatalogConfig, open_catalog
from penstock.maintenance.tables.ownership.storage import TableLocation
from tests.maintenance.tables import BY_DAY, COMPACT, LATER, SCHEMA, SampleTable, rows
from tests.servers.weed import weed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.weed import Weed

KEEP_ONE = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}
READY_SECONDS = 60


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weed]:
    with weed(tmp_path_factory.mktemp("weed"), "bucket") as (server, process):
        deadline = time.monotonic() + READY_SECONDS
        while not server.ready():
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        yield server


@pytest.fixture
def far(s3: Weed, tmp_path: Path) -> Iterator[SampleTable]:
    properties = {
        "warehouse": f"s3://bucket/{tmp_path.name}",
        "s3.endpoint": s3.endpoint,
        "s3.access-key-id": s3.access_key,
        "s3.secret-access-key": s3.secret_key,
        "s3.region": "us-east-1",
    }
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = open_catalog(CatalogConfig(name="lake", type="sql", uri=uri, properties=properties))
    catalog.create_namespace("shop")
    yield SampleTable(catalog)
    catalog.close()


def in_ten_days() -> datetime:
    return datetime.now(UTC) + timedelta(days=10)


def test_odd_partitions_on_s3_are_tidied_and_nothing_live_is_touched(far: SampleTable) -> None:
    far.catalog.create_table(far.name, SCHEMA, partition_spec=BY_DAY)
    for number, value in enumerate(["a b", "a/b", "50%", "c:d", "ünï", "i#j", "k?l", ".."]):
        for start in (2 * number, 2 * number + 1):
            far.table.append(rows(start, 1, day=value))
    before = far.all_rows()
    location = TableLocation(far.table)
    with location.file_system.open_output_stream(f"{location.path}/data/day=a%2Fb/junk") as stream:
        stream.write(b"x")
    assert look(far.table, Tier.STORAGE, now=in_ten_days()).orphan_files == 1
    done = far.run("remove_orphan_files", now=in_ten_days)
    assert (done.status, done.deleted_files) == (Ended.COMPLETED, 1), done.message
    assert far.run({**COMPACT, "min_input_files": 2}).status is Ended.COMPLETED
    done = far.run(KEEP_ONE, now=lambda: LATER)
    assert (done.status, done.after["snapshots"]) == (Ended.COMPLETED, 1)
    assert far.all_rows() == before
    assert len([file for file in location.files("data") if file.name.endswith(".parquet")]) == 8


def test_the_table_is_known_by_the_other_name_of_its_store_too(far: SampleTable) -> None:
    far.create()
    inner = far.table.location().replace("s3://", "s3a://") + "/data/inner"
    far.catalog.create_table(("shop", "inner"), SCHEMA, location=inner)
    done = far.run("remove_orphan_files", now=in_ten_days)
    assert (done.status, "shop.inner" in done.message) == (Ended.REFUSED, True)


def test_a_location_of_which_nothing_exists_has_no_orphans(far: SampleTable) -> None:
    elsewhere = {"write.metadata.path": "s3://bucket/meta", "write.data.path": "s3://bucket/data"}
    far.catalog.create_table(far.name, SCHEMA, location="s3://bucket/nowhere", properties=elsewhere)
    far.append(0, 10)
    assert far.run("remove_orphan_files", now=in_ten_days).status is Ended.NOTHING_TO_DO


def opened_with(far: SampleTable, changes: dict[str, str]) -> SampleTable:
    """The same catalog, as somebody else sees it."""
    properties = {name: text for name, text in far.catalog.properties.items() if name != "uri"}
    config = CatalogConfig(
        name="lake",
        type="sql",
        uri=far.catalog.properties["uri"],
        properties=properties | changes,
    )
    return SampleTable(open_catalog(config))


def test_a_storage_that_may_not_be_listed_fails_the_action_by_name(
    far: SampleTable, s3: Weed
) -> None:
    far.create(files=2)
    blind = opened_with(far, {"s3.access-key-id": s3.blind_key})
    done = blind.run("remove_orphan_files", now=in_ten_days)
    assert (done.status, far.table.location() in done.message) == (Ended.FAILED, True)
    assert "ACCESS_DENIED" in done.message
    blind.catalog.close()


def test_a_storage_that_may_not_be_read_is_told_without_the_secret(far: SampleTable) -> None:
    far.create(files=1)
    stranger = opened_with(far, {"s3.secret-access-key": "wrong-and-secret"})
    with pytest.raises(CatalogUnavailable, match=r"shop\.orders .*ACCESS_DENIED") as raised:
        stranger.table_access.load()
    assert "wrong-and-secret" not in raised.value.message
    stranger.catalog.close()
