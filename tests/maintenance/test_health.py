from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.kit.errors import InvalidInput
from penstock.maintenance.action import Name, parse
from penstock.maintenance.catalogs import Catalogs, open_catalog
from penstock.maintenance.errors import NoSuchCatalog, UnknownAction
from penstock.maintenance.facts import Facts, look
from penstock.maintenance.health import judge
from penstock.maintenance.tier import Tier
from tests.maintenance.tables import COMPACT, Stand

NOW = datetime.now(UTC)
MB = 1024 * 1024
GOOD = Facts(
    tier=Tier.MANIFESTS,
    table_uuid="u",
    location="file:///t",
    format_version=2,
    snapshot_id=1,
    last_updated_ms=0,
    snapshots=3,
    oldest_snapshot_ms=int(NOW.timestamp() * 1000),
    refs=1,
    metadata_log=1,
    target_bytes=512 * MB,
    data_files=10,
    rows=10**6,
    bytes=10 * 500 * MB,
    delete_files=0,
    position_deletes=0,
    equality_deletes=0,
    manifests=1,
    manifest_bytes=MB,
    small_files=0,
    small_bytes=0,
    partitions=1,
    largest_partition_share=1.0,
)


def score(**changed: object) -> int:
    from dataclasses import replace

    return judge(replace(GOOD, **changed), now_ms=int(NOW.timestamp() * 1000)).score


def test_what_is_wrong_lowers_the_score_and_says_why() -> None:
    assert score() == 100
    assert score(data_files=1000, bytes=1000 * MB, small_files=1000) <= 61
    assert score(data_files=1000, bytes=MB, small_files=1000) > 95
    assert score(delete_files=20, position_deletes=300_000) == 70
    assert score(snapshots=500) == 85
    assert score(manifests=400) == 85
    worst = judge_all(
        data_files=5000, bytes=5000 * MB, small_files=5000, delete_files=9000, snapshots=500, manifests=400
    )
    assert worst.score <= 3
    assert [i.code for i in worst.issues] == ["small_files", "deletes", "history", "manifests"]
    assert worst.actions == (Name.EXPIRE_SNAPSHOTS, Name.REWRITE_DATA_FILES, Name.REWRITE_MANIFESTS)
    assert worst.level == "critical"
    assert (worst.gain.files, worst.gain.planning_seconds) == (5000 - 10 + 9000, pytest.approx(0.798))


def judge_all(**changed: object):
    from dataclasses import replace

    return judge(replace(GOOD, **changed), now_ms=int(NOW.timestamp() * 1000))


def test_each_tier_says_what_it_looked_at_and_the_rest_is_not_known(stand: Stand) -> None:
    stand.create()
    table = stand.table
    metadata, manifests, storage = (look(table, tier, now=NOW) for tier in Tier)
    assert (metadata.data_files, metadata.snapshots, metadata.manifests, metadata.orphan_files) == (6, 6, None, None)
    assert (manifests.manifests, manifests.small_files, manifests.orphan_files) == (6, 6, None)
    assert (storage.orphan_files, storage.orphan_bytes) == (0, 0)
    old = Path(table.location().removeprefix("file://")) / "data/old"
    old.write_bytes(b"x" * 10)
    os.utime(old, ((NOW - timedelta(days=4)).timestamp(),) * 2)
    assert look(table, Tier.STORAGE, now=NOW).orphan_bytes == 10


def test_a_table_is_no_worse_after_it_was_maintained(stand: Stand) -> None:
    stand.create()
    stand.delete([3])
    before = judge(look(stand.table, Tier.MANIFESTS, now=NOW), now_ms=int(NOW.timestamp() * 1000))
    stand.run(COMPACT)
    stand.run("rewrite_position_delete_files")
    after = judge(look(stand.table, Tier.MANIFESTS, now=NOW), now_ms=int(NOW.timestamp() * 1000))
    assert after.score > before.score
    assert after.gain.files == 0


def test_actions_come_in_their_order_whatever_is_asked_and_options_have_limits() -> None:
    given = ["remove_orphan_files", {"name": "rewrite_data_files", "max_files": 1}, "expire_snapshots"]
    assert [a.name for a in parse(given)] == ["expire_snapshots", "rewrite_data_files", "remove_orphan_files"]
    for wrong in ([], ["vacuum"], [{"options": 1}], ["expire_snapshots", "expire_snapshots"]):
        with pytest.raises(UnknownAction):
            parse(wrong)
    for option in (
        {"max_files": 0},
        {"max_files": True},
        {"max_files": "1"},
        {"colour": 1},
        {"where": ""},
        {"force": 1},
    ):
        with pytest.raises(InvalidInput):
            parse([{"name": "rewrite_data_files", **option}])


def test_catalogs_are_configured_by_name_and_opened_by_type(tmp_path: Path) -> None:
    sqlite = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": tmp_path.as_uri()}
    catalogs = Catalogs({"lake": sqlite, "ours": {"type": "sql"}, "far": {"type": "rest", "uri": "http://127.0.0.1:1"}})
    assert catalogs.get().name == "lake"
    assert [c.shared for c in catalogs] == [False, True, False]
    opened = open_catalog(catalogs.get("lake"))
    assert opened.list_namespaces() == []
    opened.close()
    assert "warehouse" not in repr(catalogs.get())
    with pytest.raises(NoSuchCatalog, match="nowhere"):
        catalogs.get("nowhere")
    with pytest.raises(InvalidInput, match="type"):
        Catalogs({"x": {"type": "nonsense"}})
    with pytest.raises(InvalidInput, match="uri"):
        Catalogs({"x": {"type": "rest"}})
