"""Competing records: the most pairs possible, the same ones by every method, in bounded memory."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.reconcile.evidence.manifest import manifest
from penstock.reconcile.matching.assignment import Candidate, choose
from penstock.reconcile.matching.clusters import clusters
from penstock.reconcile.matching.matcher import MatchLimits
from penstock.reconcile.recipes.validation import read
from tests.reconcile.book_runs import digests, document, execute, rows
from tests.reconcile.oracle import assignment as plain

if TYPE_CHECKING:
    from pathlib import Path

KEY = {"left": "ref", "op": "eq", "right": "ref"}
NEAR = {"left": "amount", "op": "tolerance", "right": "amount", "absolute": "0.02"}
RULE = [{"name": "near", "conditions": [KEY, NEAR]}]


def side(prefix: str, *amounts: str) -> pa.Table:
    return pa.table(
        {
            "id": [f"{prefix}{number}" for number in range(len(amounts))],
            "ref": ["A"] * len(amounts),
            "amount": pa.array(map(Decimal, amounts), pa.decimal128(12, 2)),
        }
    )


def pairs(done: Any) -> list[tuple[str, str]]:
    return [(row["left_id"], row["right_id"]) for row in rows(done, "matched")]


def test_the_nearest_pair_does_not_leave_two_records_open_that_could_be_matched(
    engine: str,
    tmp_path: Path,
) -> None:
    """Best first 100.00 takes 100.01, and neither 100.03 nor 99.98 finds a partner."""
    left, right = side("i", "100.00", "100.03"), side("p", "100.01", "99.98")
    done = execute(tmp_path / "run", document(rules=RULE), left, right, engine=engine)
    assert pairs(done) == [("i0", "p1"), ("i1", "p0")]
    assert [row["ambiguous"] for row in rows(done, "matched")] == [False, False]


def test_of_as_many_pairs_those_differ_least_in_all(engine: str, tmp_path: Path) -> None:
    left, right = side("i", "10.00", "10.01"), side("p", "10.01", "9.99")
    done = execute(tmp_path / "run", document(rules=RULE), left, right, engine=engine)
    assert pairs(done) == [("i0", "p1"), ("i1", "p0")]


def test_a_choice_that_is_as_good_makes_pairs_ambiguous(engine: str, tmp_path: Path) -> None:
    """0.01 + 0.01 or 0.00 + 0.02: as much in all, with no two pairs alike."""
    left, right = side("i", "10.00", "10.01"), side("p", "10.01", "10.02")
    done = execute(tmp_path / "run", document(rules=RULE), left, right, engine=engine)
    assert [row["ambiguous"] for row in rows(done, "matched")] == [True, True]


@pytest.mark.parametrize("seed", range(8))
def test_the_choice_is_the_best_of_all(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        most, count = chance.choice([1, 2, 3, 50]), chance.randrange(3)
        candidates = [
            Candidate(
                a,
                b,
                a,
                b,
                chance.choice([10_000, 10_000, 9_000]),
                tuple(chance.randrange(most) for _ in range(count)),
            )
            for a in range(chance.randrange(1, 6))
            for b in range(chance.randrange(1, 6))
            if chance.random() < 0.6
        ]
        chance.shuffle(candidates)
        for cluster in clusters(candidates):
            edges = {plain.Edge(c.a, c.b, c.score, tuple(map(Decimal, c.away))): c for c in cluster}
            best = {(edges[edge], ambiguous) for edge, ambiguous in plain.best(list(edges)).items()}
            assert set(choose(cluster)) == best


def crowd(prefix: str, count: int, groups: int) -> pa.Table:
    """Records of a few references, whose amounts are a cent or two apart."""
    numbers = range(count)
    return pa.table(
        {
            "id": [f"{prefix}{number * 7919 % count:06d}" for number in numbers],
            "ref": [f"R{number % groups}" for number in numbers],
            "amount": pa.array(
                [Decimal(number * 31 % 97) / 100 for number in numbers], pa.decimal128(12, 2)
            ),
        }
    )


def test_who_settles_clusters_does_not_show_in_the_bytes(tmp_path: Path) -> None:
    """In memory or by the engine, on either engine, exactly or greedily."""
    left, right = crowd("i", 600, 12), crowd("p", 550, 12)
    for exact in (4, 300):
        written = [
            digests(
                execute(
                    tmp_path / f"{exact}-{at_once}-{name}",
                    document(rules=RULE),
                    left,
                    right,
                    engine=name,
                    limits=MatchLimits(exact_cluster=exact, at_once=at_once),
                )
            )
            for at_once in (0, 10**6)
            for name in ("duckdb", "datafusion")
        ]
        assert all(one == written[0] for one in written)


def test_evidence_says_which_clusters_were_settled_greedily(engine: str, tmp_path: Path) -> None:
    left, right = side("i", *["1.00"] * 4), side("p", *["1.00"] * 3)
    recipe = document(rules=RULE)
    done = execute(
        tmp_path / "run", recipe, left, right, engine=engine, limits=MatchLimits(exact_cluster=6)
    )
    document_of_run = manifest(done, read(recipe), version=1, inputs={}, run={})
    [rule] = document_of_run["rules"]
    assert (rule["greedy_clusters"], rule["greedy_records"]) == (1, 7)
    [warning] = document_of_run["warnings"]
    assert warning["path"] == "rules.0"
    assert "settled greedily" in warning["message"]
    exactly = execute(
        tmp_path / "exact", recipe, left, right, engine=engine, limits=MatchLimits(exact_cluster=7)
    )
    assert exactly.evidence.rules[0]["greedy_clusters"] == 0
    assert not exactly.warnings
    assert pairs(exactly) == pairs(done)


GROUPS, IN_GROUP = 6, 400
MEMORY = 64 * 1024**2
AROUND_THE_ENGINE = 360 * 1024**2
"""Python with its libraries, a row group in each direction, and what the engine's allocator
keeps."""


def test_a_million_competing_candidates_are_settled_in_bounded_memory(tmp_path: Path) -> None:
    """All are equally good; as Python objects they would be a quarter of a gigabyte more."""
    for name in ("left", "right"):
        same = crowd(name[0], GROUPS * IN_GROUP, GROUPS).drop(["amount"])
        amount = pa.array([Decimal("1.00")] * len(same), pa.decimal128(12, 2))
        pq.write_table(same.append_column("amount", amount), tmp_path / f"{name}.parquet")
    counts, peak = tight(tmp_path)
    assert counts == {name: [GROUPS * IN_GROUP] * 2 + [0] for name in ("left", "right")}
    assert peak < MEMORY + AROUND_THE_ENGINE, peak / 1024**2


PARTS = 600_000


def test_many_parts_and_duplicates_are_settled_in_bounded_memory(tmp_path: Path) -> None:
    """Two records want all parts, every key is there twice; the first of the two gets them."""
    kind = pa.decimal128(12, 2)
    amounts = {"left": pa.array([Decimal(PARTS)] * 2, kind), "right": pa.array([1] * PARTS, kind)}
    for name, amount in amounts.items():
        ids = pa.array([number // 2 for number in range(len(amount))])
        same = {"id": ids, "ref": pa.repeat("a", len(amount)), "amount": amount}
        pq.write_table(pa.table(same), tmp_path / f"{name}.parquet")
    counts, peak = tight(tmp_path, "1:N")
    assert counts == {"left": [2, 1, 1], "right": [PARTS, PARTS, 0]}
    assert peak < MEMORY + AROUND_THE_ENGINE, peak / 1024**2


def tight(folder: Path, pattern: str = "1:1") -> tuple[dict[str, list[int]], int]:
    """The counts and the peak memory of a matching in a process of its own."""
    files = [str(folder / f"{name}.parquet") for name in ("left", "right")]
    module = [sys.executable, "-m", "tests.reconcile.measured_match"]
    command = [*module, *files, str(folder / "scratch"), str(MEMORY), pattern]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout)
    return answer["counts"], answer["peak"]
