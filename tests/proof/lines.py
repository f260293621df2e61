"""The tables and the model, each written down as lines, so that comparing them is comparing
texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.proof.proof_db import EPOCH

if TYPE_CHECKING:
    from tests.proof.model import Group, Job, Model, Session
    from tests.proof.proof_db import ProofDatabase

_TAG = """coalesce(substring(unique_key FROM '^(?:schedule|retry):.*'), payload->>'tag',
  'sweep of ' || (payload->>'job_id'))"""


def _at(column: str) -> str:
    return f"(extract(epoch FROM {column} - '{EPOCH.isoformat()}') * 1000000)::bigint"


_LINES = f"""
SELECT concat_ws(' ', 'live', job_id, status, 'fence=' || attempt_id, 'no=' || attempt_no,
  'worker=' || worker,
  'session=' || session, 'lease=' || {_at("lease_until")}, 'deadline=' || {_at("deadline")},
  'wake=' || {_at("wake_at")}, 'key=' || order_key, 'polls=' || polls, 'queue=' || queue, 'lock='
    || lock_key,
  'group=' || group_id, 'state=' || (state #>> '{{}}'), 'progress=' || (progress #>> '{{}}'),
  CASE WHEN status = 1 AND overdue THEN 'overdue=t' END) FROM penstock.live
UNION ALL SELECT concat_ws(' ', 'outcome', job_id, status, 'at=' || {_at("finished_at")}, 'fence='
  || attempt_id,
  'no=' || attempt_no, 'worker=' || worker, 'error=' || (error->>'code')) FROM penstock.outcome
UNION ALL SELECT concat_ws(' ', 'attempt', job_id, attempt_id, 'no=' || attempt_no, how, 'worker='
  || worker)
  FROM penstock.attempt
UNION ALL SELECT concat_ws(' ', 'group', group_id, status, 'deadline=' || {_at("deadline")},
  CASE WHEN status < 10 THEN 'look=' || {_at("look_at")} END,
  'error=' || (error->>'code')) FROM penstock.job_group
UNION ALL SELECT concat_ws(' ', 'session', session, worker, 'ended=' || {_at("ended_at")}, 'by=' ||
  superseded_by,
  'alive=' || {_at("alive_at")}) FROM penstock.worker_session
UNION ALL SELECT concat_ws(' ', 'schedule', name, {_at("next_at")}, 'again=' || {_at("try_at")},
  'failures=' || failures) FROM penstock.schedule
UNION ALL SELECT concat_ws(' ', 'control', draining) FROM penstock.control
UNION ALL SELECT concat_ws(' ', 'job', job_id, {_TAG}) FROM penstock.job"""

NEWBORN = f"""
SELECT job_id, {_TAG} AS tag, order_key FROM penstock.job LEFT JOIN penstock.live USING (job_id)
  WHERE job_id > $1"""


async def lines_of_tables(proof_db: ProofDatabase) -> set[str]:
    return {r[0] for r in await proof_db.eye.fetch(_LINES)}


def lines_of_model(model: Model) -> set[str]:
    lines = {f"control {'t' if model.draining else 'f'}"}
    lines.update(
        _words(
            f"schedule {name} {_us(plan.next_at)}", again=_us(plan.try_at), failures=plan.failures
        )
        for name, plan in model.schedules.items()
    )
    lines.update(_group(g) for g in model.groups.values())
    lines.update(_session(s) for s in model.sessions.values())
    for job in model.jobs:
        lines.add(f"job {job.job_id} {job.tag}")
        lines.add(_outcome(job) if job.over else _live(job))
        lines.update(_attempts(job))
    return lines


def _live(job: Job) -> str:
    return _words(
        f"live {job.job_id} {int(job.status)}",
        fence=job.fence and job.fence.attempt_id,
        no=job.attempt_no,
        worker=job.worker,
        session=job.session,
        lease=_us(job.lease_until),
        deadline=_us(job.deadline),
        wake=_us(job.wake_at),
        key=job.order_key,
        polls=job.polls,
        queue=job.queue,
        lock=job.lock_key,
        group=job.group and job.group.group_id,
        state=job.state,
        progress=job.progress,
        overdue="t" if job.running and job.overdue else None,
    )


def _outcome(job: Job) -> str:
    return _words(
        f"outcome {job.job_id} {int(job.status)}",
        at=_us(job.ended_at),
        fence=job.ended_by and job.ended_by.attempt_id,
        no=job.attempt_no,
        worker=job.worker,
        error=job.error,
    )


def _attempts(job: Job) -> list[str]:
    return [
        f"attempt {job.job_id} {fence.attempt_id} no={way.attempt_no} {way.how} worker={way.worker}"
        for fence, way in job.ways.items()
        if fence != job.ended_by
    ]


def _group(group: Group) -> str:
    return _words(
        f"group {group.group_id} {group.status}",
        deadline=_us(group.deadline),
        look=_us(group.look_at) if group.status < 10 else None,
        error=group.error,
    )


def _session(session: Session) -> str:
    return _words(
        f"session {session.session} {session.worker}",
        ended=_us(session.ended_at),
        by=session.superseded_by,
        alive=_us(session.alive_at),
    )


def _words(head: str, **values: object) -> str:
    return " ".join(
        [head, *(f"{name}={value}" for name, value in values.items() if value is not None)]
    )


def _us(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * 1_000_000
