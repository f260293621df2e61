"""A snapshot's states and its place in the storage."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.graphs.errors import InvalidStateTransition
from penstock.graphs.snapshots.model import SnapshotStatus, check_step, prefix_of
from penstock.kit.errors import InvalidInput, NotFound
from penstock.storage.keys import check_prefix

if TYPE_CHECKING:
    from tests.graphs.deployment import Deployment

STEPS = {
    ("pending", "creating"),
    ("pending", "cancelled"),
    ("creating", "ready"),
    ("creating", "failed"),
    ("creating", "cancelled"),
    ("failed", "creating"),
}


@pytest.mark.parametrize(("now", "target"), list(product(SnapshotStatus, SnapshotStatus)))
def test_a_snapshot_takes_these_steps_and_no_other(
    now: SnapshotStatus, target: SnapshotStatus
) -> None:
    if (now, target) in STEPS:
        check_step(1, now, target)
        return
    with pytest.raises(InvalidStateTransition) as refused:
        check_step(1, now, target)
    assert (refused.value.status, refused.value.code) == (409, "INVALID_STATE_TRANSITION")


@given(st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=40))
def test_whatever_an_owner_is_called_their_files_have_a_place_that_nobody_else_has(
    one: str, other: str
) -> None:
    first, second = prefix_of(one, 7, 2, 42), prefix_of(other, 7, 2, 42)
    check_prefix(first)
    assert first.endswith("/7/v2/42/")
    assert (first == second) == (one == other)


def test_a_plain_owner_is_their_own_folder() -> None:
    assert prefix_of("ada@example.com", None, None, 1) == "ada@example.com/0/v0/1/"


async def test_a_snapshot_is_kept_as_it_was_made(deployment: Deployment) -> None:
    snapshots = deployment.graphs.snapshots
    snapshot = await snapshots.add(owner="me", name="n", description="d")
    assert await snapshots.get(snapshot.snapshot_id) == snapshot
    assert (snapshot.status, snapshot.prefix) == (
        SnapshotStatus.PENDING,
        f"me/0/v0/{snapshot.snapshot_id}/",
    )
    assert (snapshot.node_counts, snapshot.ready_at, snapshot.expires_at) == ({}, None, None)
    with pytest.raises(InvalidInput):
        await snapshots.add(owner="me", name="")
    for snapshot_id in (0, -1, 2**63, snapshot.snapshot_id + 1):
        with pytest.raises(NotFound):
            await snapshots.get(snapshot_id)
