from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.kit.errors import InvalidInput
from penstock.maintenance.actions.model import Name, parse
from penstock.maintenance.errors import NoSuchCatalog, UnknownAction
from penstock.maintenance.tables.assessment.expectation import Compaction, Judged, Rewrite
from penstock.maintenance.tables.assessment.facts import Facts, look
from penstock.maintenance.tables.assessment.health import Health, judge
from penstock.maintenance.tables.assessment.tier import Tier
from penstock.maintenance.tables.catalog.catalogs import Catalogs, open_catalog
from tests.maintenance.tables import COMPACT, SampleTable

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
        data_files=5000,
        bytes=5000 * MB,
        small_files=5000,
        delete_files=9000,
        snapshots=500,
        manifests=400,
    )
    assert worst.score <= 3
    assert [i.code for i in worst.issues] == ["small_files", "deletes", "history", "manifests"]
    assert worst.actions == (Name.EXPIRE_SNAPSHOTS, Name.REWRITE_DATA_FILES, Name.REWRITE_MANIFESTS)
    assert worst.level == "critical"
    assert (worst.gain.files, worst.gain.planning_seconds) == (
        5000 - 10 + 9000,
        pytest.approx(0.798),
    )


def judge_all(**changed: object):
    from dataclasses import replace

    return judge(replace(GOOD, **changed), now_ms=int(NOW.timestamp() * 1000))


def test_each_tier_says_what_it_looked_at_and_the_rest_is_not_known(sample: SampleTable) -> None:
    sample.create()
    table = sample.table
    metadata, manifests, storage = (look(table, tier, now=NOW) for tier in Tier)
    assert (metadata.data_files, metadata.snapshots, metadata.manifests, metadata.orphan_files) == (
        6,
        6,
        None,
        None,
    )
    assert (manifests.manifests, manifests.small_files, manifests.orphan_files) == (6, 6, None)
    assert (storage.orphan_files, storage.orphan_bytes) == (0, 0)
    old = Path(table.location().removeprefix("file://")) / "data/old"
    old.write_bytes(b"x" * 10)
    os.utime(old, ((NOW - timedelta(days=4)).timestamp(),) * 2)
    assert look(table, Tier.STORAGE, now=NOW).orphan_bytes == 10


def test_a_table_is_no_worse_after_it_was_maintained(sample: SampleTable) -> None:
    def health() -> Health:
        facts = look(sample.table, Tier.MANIFESTS, now=NOW, judged=Judged.by(parse([COMPACT])))
        return judge(facts, now_ms=int(NOW.timestamp() * 1000))

    sample.create()
    sample.delete([3])
    before = health()
    sample.run(COMPACT)
    sample.run("rewrite_position_delete_files")
    after = health()
    assert after.score > before.score
    assert (before.gain.files, after.gain.files) == (5 + 1, 0)


COMPACT_ALL = {"name": "rewrite_data_files", "force": True, "rewrite_all": True}


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("deletes", [0, 1])
@pytest.mark.parametrize(
    "action",
    [
        "rewrite_data_files",
        COMPACT,
        COMPACT_ALL,
        {"name": "rewrite_data_files", "min_input_files": 2, "force": True, "hot_seconds": 300},
        {"name": "rewrite_data_files", "force": True, "where": "day = 'd1'"},
    ],
)
def test_what_is_expected_is_what_the_plan_takes_now_and_later(
    sample: SampleTable, partitioned: bool, deletes: int, action: object
) -> None:
    sample.create(partitioned=partitioned)
    if deletes:
        sample.delete([3, 4])
    for now in (NOW, NOW + timedelta(hours=1)):
        facts = look(sample.table, Tier.MANIFESTS, now=NOW, judged=Judged.by(parse([action])))
        assert facts.compaction is not None
        rewrite = facts.compaction.at(int(now.timestamp() * 1000))
        outcome = sample.plan(action, now=lambda at=now: at)
        assert (rewrite.files, rewrite.outputs) == (outcome.rewritten_files, outcome.added_files)


def test_what_is_expected_of_manifests_and_history_is_what_their_plans_take(
    sample: SampleTable,
) -> None:
    sample.create()
    for now in (NOW, NOW + timedelta(days=6)):
        facts = look(sample.table, Tier.MANIFESTS, now=now)
        assert (
            facts.expirable_snapshots
            == sample.plan("expire_snapshots", now=lambda at=now: at).expired_snapshots
        )
        planned = sample.plan("rewrite_manifests").rewritten_files
        assert (facts.manifests, facts.manifests_after, planned) == (6, 1, 6)
    sample.run("rewrite_manifests")
    facts = look(sample.table, Tier.MANIFESTS, now=NOW)
    assert (facts.manifests, facts.manifests_after) == (1, 1)
    assert sample.plan("rewrite_manifests").status == "nothing_to_do"


def test_a_table_that_refuses_an_action_is_not_unwell_for_it(sample: SampleTable) -> None:
    sample.create(**{"gc.enabled": "false", "writer.lock-owner": "somebody"})
    facts = look(
        sample.table,
        Tier.MANIFESTS,
        now=NOW + timedelta(days=30),
        judged=Judged.by(parse([COMPACT])),
    )
    assert (facts.expirable_snapshots, facts.manifests_after) == (0, 6)
    assert facts.compaction is not None
    assert "lock-owner" in str(facts.compaction.refused)
    health = judge(facts, now_ms=int((NOW + timedelta(days=30)).timestamp() * 1000))
    assert health.score == 100
    assert {issue.code: issue.severity for issue in health.issues} == {
        "small_files": "info",
        "history": "info",
    }


def test_only_what_can_be_cured_weighs() -> None:
    none = Compaction()
    half = Compaction(rewrites=(Rewrite(files=500, bytes=500 * MB, outputs=1, delete_files=10),))
    small = {"data_files": 1000, "bytes": 1000 * MB, "small_files": 1000}
    assert score(**small, compaction=none) == 100
    assert score(**small) < score(**small, compaction=half) < 100
    deleted = {"delete_files": 20, "position_deletes": 300_000}
    of_deletes = Compaction(
        rewrites=(Rewrite(files=2, bytes=1000 * MB, outputs=2, delete_files=10),)
    )
    assert [score(**deleted, compaction=c) for c in (None, of_deletes, none)] == [70, 85, 100]
    assert [score(snapshots=500, expirable_snapshots=n) for n in (None, 480, 390, 0)] == [
        85,
        85,
        92,
        100,
    ]
    assert [score(manifests=400, manifests_after=n) for n in (None, 1, 105, 400)] == [
        85,
        85,
        92,
        100,
    ]


def test_actions_come_in_their_order_whatever_is_asked_and_options_have_limits() -> None:
    requested = [
        "remove_orphan_files",
        {"name": "rewrite_data_files", "max_files": 1},
        "expire_snapshots",
    ]
    assert [a.name for a in parse(requested)] == [
        "expire_snapshots",
        "rewrite_data_files",
        "remove_orphan_files",
    ]
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
    catalogs = Catalogs(
        {
            "lake": sqlite,
            "ours": {"type": "sql"},
            "far": {"type": "rest", "uri": "http://127.0.0.1:1"},
        }
    )
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
