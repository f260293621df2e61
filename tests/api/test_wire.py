"""Wire formats between workers and the control plane survive a round trip."""

from __future__ import annotations

import string
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import orjson
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from penstock.jobs import http_bodies, wire
from penstock.jobs.limits import MAX_JOB_ID, MAX_PAUSE
from penstock.jobs.model import (
    AttemptView,
    Beat,
    Claimed,
    Ending,
    Failed,
    Fence,
    JobSpec,
    JobView,
    Parking,
    ProgressUpdate,
    Release,
    Renewal,
    Status,
    Succeeded,
)
from penstock.kit.errors import InvalidInput
from penstock.kit.ids import check_name

names = st.text(string.ascii_letters + string.digits, min_size=1, max_size=200)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=100)
keys = st.none() | texts.filter(bool)
ids = st.integers(1, MAX_JOB_ID)
documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)
spans = st.none() | st.integers(1, 86_400).map(lambda s: timedelta(seconds=s))
pauses = st.floats(0, MAX_PAUSE)
fences = st.builds(Fence, job_id=ids, attempt_id=st.uuids())
specs = st.builds(
    JobSpec,
    kind=names,
    payload=documents,
    queue=st.none() | names,
    priority=st.none() | st.integers(0, 9),
    run_in=spans,
    deadline_in=spans,
    max_attempts=st.none() | st.integers(1, 1000),
    timeout=spans,
    group_id=st.none() | ids,
    lock_key=keys,
    unique_key=keys,
    retry_of=st.none() | ids,
    created_by=keys,
    trace=keys,
)
outcomes = st.builds(Succeeded, result=documents, spawn=st.lists(specs, max_size=2)) | st.builds(
    Failed, error=documents, retry_in=st.none() | pauses
)
ENDING = TypeAdapter[http_bodies.SucceededBody | http_bodies.FailedBody](http_bodies.EndingBody)


def heard(document: wire.Document) -> wire.Document:
    received: wire.Document = orjson.loads(wire.encode(document))
    return received


@given(specs)
def test_a_spec(spec: JobSpec) -> None:
    assert http_bodies.SpecBody.model_validate(heard(wire.dump_spec(spec))).value() == spec


@given(st.builds(Ending, fence=fences, outcome=outcomes))
def test_an_ending(ending: Ending) -> None:
    assert ENDING.validate_python(heard(wire.dump_ending(ending))).value() == ending


@given(
    st.builds(Parking, fence=fences, state=documents, wake_in=pauses),
    st.builds(Release, fence=fences, reason=texts),
    st.builds(ProgressUpdate, fence=fences, progress=documents),
)
def test_the_other_writes(parking: Parking, release: Release, update: ProgressUpdate) -> None:
    assert (
        http_bodies.ParkingBody.model_validate(heard(wire.dump_parking(parking))).value() == parking
    )
    assert (
        http_bodies.ReleasedBody.model_validate(heard(wire.dump_release(release))).value()
        == release
    )
    assert (
        http_bodies.ProgressUpdateBody.model_validate(heard(wire.dump_progress(update))).value()
        == update
    )


@given(
    st.builds(
        Beat,
        worker=names,
        session=st.uuids(),
        queues=st.lists(names, max_size=3),
        slots=st.integers(0, 1000),
        version=texts,
        held=st.lists(fences, max_size=3),
    )
)
def test_a_beat(beat: Beat) -> None:
    assert http_bodies.HeartbeatBody.model_validate(heard(wire.dump_beat(beat))).value() == beat


@given(documents, st.none() | documents)
def test_a_claim_keeps_its_payload_and_its_state(payload: object, state: object) -> None:
    claimed = Claimed(
        fence=Fence(job_id=1, attempt_id=uuid4()),
        kind="work",
        raw_payload=wire.encode(payload).decode(),
        attempt_no=1,
        max_attempts=3,
        lease_seconds=60,
        seconds_left=59.5,
        waited=0.25,
        queue="default",
        raw_state=None if state is None else wire.encode(state).decode(),
    )
    assert wire.load_claimed(heard(wire.dump_claimed(claimed))) == claimed


def test_a_job_and_a_renewal() -> None:
    now = datetime(2027, 1, 4, 12, 30, 15, 123456, tzinfo=UTC)
    attempt = AttemptView(
        attempt_id=uuid4(),
        attempt_no=1,
        worker="w",
        claimed_at=now,
        ended_at=None,
        how="running",
        detail={"a": 1},
    )
    values = dict.fromkeys(JobView.__slots__) | {
        "job_id": 7,
        "kind": "work",
        "queue": "default",
        "status": Status.SCHEDULED,
        "created_at": now,
        "wake_at": now,
        "payload": {"a": [1]},
        "attempts": [attempt],
    }
    view = JobView(**values)
    assert wire.load_job(heard(wire.dump_job(view))) == view
    renewal = Renewal(
        lost=[Fence(job_id=1, attempt_id=uuid4())], cancelled=[Fence(job_id=2, attempt_id=uuid4())]
    )
    assert wire.load_renewal(heard(wire.dump_renewal(renewal))) == renewal


@given(st.text(max_size=6) | st.from_regex(http_bodies.NAME_PATTERN))
def test_the_edge_and_the_kernel_agree_on_what_a_name_is(name: str) -> None:
    try:
        check_name(name, "Name")
    except InvalidInput:
        valid = False
    else:
        valid = True
    try:
        http_bodies.LeaveBody(worker=name, session=uuid4())
    except ValueError:
        assert not valid
    else:
        assert valid
