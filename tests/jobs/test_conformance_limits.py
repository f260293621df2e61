"""Every limit, at it and one past it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.jobs.model import Ending, Failed, JobSpec, Parking, ProgressUpdate, Release, Succeeded
from penstock.kit.errors import InvalidInput, PayloadTooLarge
from tests.jobs.conformance import DONE, STALE, Subject, beat, done, failed, nobody

MEGABYTE = 1024 * 1024


def text_of(size: int) -> str:
    """A JSON document of exactly this many bytes."""
    return "x" * (size - 2)


async def test_a_payload_may_have_a_megabyte_and_not_a_byte_more(subject: Subject) -> None:
    claimed = await subject.held(payload=text_of(MEGABYTE))
    assert claimed.payload == text_of(MEGABYTE)
    with pytest.raises(PayloadTooLarge) as refused:
        await subject.add(payload=text_of(MEGABYTE + 1))
    assert refused.value.details["limit"] == MEGABYTE


async def test_so_may_a_result_an_error_a_state_and_progress(subject: Subject) -> None:
    claimed = await subject.held()
    fits, too_much = text_of(MEGABYTE), text_of(MEGABYTE + 1)
    assert await subject.store.progress([ProgressUpdate(fence=claimed.fence, progress=fits)]) == [
        True
    ]
    for refused in (
        subject.store.progress([ProgressUpdate(fence=claimed.fence, progress=too_much)]),
        subject.store.park([Parking(fence=claimed.fence, state=too_much, wake_in=0)]),
        subject.store.finish([done(claimed, too_much)]),
        subject.store.finish([failed(claimed, too_much)]),
    ):
        with pytest.raises(PayloadTooLarge):
            await refused
    await subject.store.park([Parking(fence=claimed.fence, state=fits, wake_in=0)])
    claimed = await subject.claim_one()
    assert claimed.state == fits
    assert await subject.store.finish([done(claimed, fits)]) == [DONE]


async def test_many_large_results_at_once_are_all_written(subject: Subject) -> None:
    for _ in range(12):
        await subject.add()
    claimed = await subject.claim(12)
    exchanged = await subject.store.exchange(
        [done(c, text_of(MEGABYTE)) for c in claimed], "w1", ["default"], 1
    )
    assert list(exchanged.verdicts) == [DONE] * 12


async def test_a_claim_takes_up_to_a_thousand(subject: Subject) -> None:
    await subject.store.enqueue([JobSpec(kind="work")] * 1001)
    assert len(await subject.claim(1000)) == 1000
    for limit in (1001, -1):
        with pytest.raises(InvalidInput):
            await subject.claim(limit)


async def test_a_claim_waits_up_to_a_minute(subject: Subject) -> None:
    await subject.add()
    assert len(await subject.store.claim("w1", ["default"], 1, wait=60)) == 1
    for wait in (60.1, 61, -1):
        with pytest.raises(InvalidInput):
            await subject.store.claim("w1", ["default"], 1, wait=wait)


async def test_a_batch_has_up_to_ten_thousand_items(subject: Subject) -> None:
    assert len(await subject.store.enqueue([JobSpec(kind="work")] * 10_000)) == 10_000
    fence = nobody()
    ending = Ending(fence=fence, outcome=Succeeded())
    assert set(await subject.store.finish([ending] * 10_000)) == {STALE}
    assert set(await subject.store.release([Release(fence=fence, reason="")] * 10_000)) == {False}
    many = 10_001
    for refused in (
        subject.store.enqueue([JobSpec(kind="work")] * many),
        subject.store.finish([ending] * many),
        subject.store.exchange([ending] * many, "w1", ["default"], 1),
        subject.store.progress([ProgressUpdate(fence=fence, progress=None)] * many),
        subject.store.park([Parking(fence=fence, state=None, wake_in=0)] * many),
        subject.store.release([Release(fence=fence, reason="")] * many),
        subject.store.renew(beat(*[fence] * many)),
    ):
        with pytest.raises(InvalidInput):
            await refused


async def test_a_job_is_put_off_for_up_to_a_day(subject: Subject) -> None:
    claimed = await subject.held()
    for pause in (86_401, -1):
        with pytest.raises(InvalidInput):
            await subject.store.park([Parking(fence=claimed.fence, state=None, wake_in=pause)])
        with pytest.raises(InvalidInput):
            await subject.store.finish(
                [Ending(fence=claimed.fence, outcome=Failed(error=1, retry_in=pause))]
            )
    assert await subject.store.park([Parking(fence=claimed.fence, state=None, wake_in=86_400)]) == [
        True
    ]


WRONG: list[dict[str, object]] = [
    {"priority": 10},
    {"priority": -1},
    {"max_attempts": 0},
    {"max_attempts": 1001},
    {"timeout": timedelta(0)},
    {"timeout": timedelta(days=31)},
    {"run_in": timedelta(seconds=-1)},
    {"run_in": timedelta(days=3654)},
    {"deadline_in": timedelta(days=999_999)},
    {"queue": "no spaces"},
    {"queue": "x" * 201},
    {"queue": "nul\x00"},
    {"lock_key": ""},
    {"lock_key": "x" * 501},
    {"unique_key": "nul\x00"},
    {"created_by": "x" * 501},
    {"payload": {"nul": "\x00"}},
    {"payload": {"huge": 2**64}},
    {"payload": {"not json": object()}},
]
RIGHT: list[dict[str, object]] = [
    {"priority": 0},
    {"priority": 9},
    {"max_attempts": 1000},
    {"timeout": timedelta(days=30)},
    {"run_in": timedelta(0)},
    {"run_in": timedelta(days=3653)},
    {"deadline_in": timedelta(days=3653)},
    {"queue": "x" * 200},
    {"lock_key": "🌊" * 500},
    {"unique_key": "🌊" * 500},
    {"payload": {"huge": 2**64 - 1}},
]


async def test_a_spec_out_of_range_is_refused_in_words(subject: Subject) -> None:
    for wrong in WRONG:
        with pytest.raises(InvalidInput) as refused:
            await subject.add(**wrong)
        assert refused.value.message, wrong
    assert await subject.claim(10) == []


async def test_a_spec_at_its_bounds_is_taken(subject: Subject) -> None:
    for right in RIGHT:
        await subject.add(**right)


async def test_a_worker_has_a_name(subject: Subject) -> None:
    for worker in ("", "no spaces", "nul\x00", "x" * 201):
        with pytest.raises(InvalidInput):
            await subject.store.claim(worker, ["default"], 1)


async def test_a_claim_names_at_most_a_hundred_queues(subject: Subject) -> None:
    await subject.store.claim("w1", [f"q{n}" for n in range(100)], 1)
    with pytest.raises(InvalidInput):
        await subject.store.claim("w1", [f"q{n}" for n in range(101)], 1)
