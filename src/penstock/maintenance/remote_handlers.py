"""Maintenance on an engine elsewhere: the job is parked between two looks at its statement, whose
handle is its state.

A look begins with what the state says and ends with the next state, so whoever dies in the middle
has lost nothing and any worker goes on: it adopts the statement. What reaches it is written down
first; the next look starts it. An attempt that ends the job cancels the statement first; where
nobody holds the job, a job of its own is sent to. What was done is measured on the table itself,
before and after.

A statement that its engine lost may have committed before: then the table has a snapshot of it,
which counts. If there is none, the attempt fails and the next one begins anew, so attempts bound
the statements.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, assert_never

from penstock.jobs.handler import Park, Stop, Stopped
from penstock.kit.clock import SYSTEM, Clock
from penstock.kit.errors import PenstockError
from penstock.kit.poll_interval import poll_delay
from penstock.maintenance.actions.model import Ended, Name, Outcome
from penstock.maintenance.engines.contract import Failed, Finished, Held, Running
from penstock.maintenance.errors import CommitConflict, CommitUnknown, Refused
from penstock.sources.errors import transient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.jobs.handler import Job, JobContext
    from penstock.maintenance.actions.context import Run
    from penstock.maintenance.actions.model import Action
    from penstock.maintenance.control_plane import MaintenanceControlPlane
    from penstock.maintenance.engines.contract import RemoteEngine
    from penstock.maintenance.payloads import Order
    from penstock.maintenance.tables.table_access import TableAccess

CANCEL_SECONDS = 10.0
ORPHAN = "orphan_file_location"
"""The one column of an engine's answer that is read: a file that it removed, or would remove."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteState:
    """How far a job is: the actions that ended, and the statement of the next one.

    `attempt_no` is the attempt that last saw the statement alive; a later one that finds it dead
    begins anew. `since` is the table's snapshot when it began.
    """

    ended: tuple[tuple[str, str, str], ...] = ()
    leftovers: int = 0
    query_id: str = ""
    handle: Mapping[str, str] = field(default_factory=dict, repr=False)
    sql: str = ""
    polls: int = 0
    attempt_no: int = 0
    submitted_at: str = ""
    since: int = 0
    before: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, state: Mapping[str, Any]) -> RemoteState:
        known = {name: state[name] for name in cls.__slots__ if name in state}
        return cls(**known | {"ended": tuple(tuple(each) for each in state.get("ended", ()))})

    @property
    def held(self) -> Held:
        return Held(query_id=self.query_id, handle=self.handle)

    def holding(self, held: Held) -> RemoteState:
        return replace(self, query_id=held.query_id, handle=dict(held.handle))

    def after(self, outcome: Outcome) -> RemoteState:
        told = (str(outcome.action), str(outcome.status), outcome.message)
        return RemoteState(ended=(*self.ended, told), leftovers=self.leftovers)

    def outcomes(self, engine: str) -> list[Outcome]:
        return [
            Outcome(action=Name(a), status=Ended(s), engine=engine, message=m)
            for a, s, m in self.ended
        ]


class RemoteMaintenance:
    """One look at one job."""

    def __init__(
        self,
        job: Job,
        ctx: JobContext,
        plane: MaintenanceControlPlane,
        order: Order,
        engine: RemoteEngine,
        lake: TableAccess,
        run: Run,
        *,
        clock: Clock = SYSTEM,
    ) -> None:
        self._job = job
        self._ctx = ctx
        self._plane = plane
        self._order = order
        self._engine = engine
        self._lake = lake
        self._run = run
        self._clock = clock

    async def look(self, state: RemoteState) -> Park | RemoteState:
        """The next state to be parked with, or the last one when all actions ended."""
        try:
            return await self._begin(state) if not state.query_id else await self._follow(state)
        except asyncio.CancelledError:
            if state.query_id and self._ends():
                await self._cancel(state)
            raise

    async def _cancel(self, state: RemoteState) -> None:
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._engine.cancel(state.held)
        except (PenstockError, TimeoutError) as e:
            self._ctx.log.warning("statement_not_cancelled", query_id=state.query_id, error=str(e))

    async def _begin(self, state: RemoteState) -> Park | RemoteState:
        while len(state.ended) < len(self._order.actions):
            self._ctx.check()
            action = self._action(state)
            try:
                sql = await self._ctx.in_thread(self._sql, action)
            except Refused as e:
                said = e.message if e.hint is None else f"{e.message} {e.hint}"
                outcome = self._outcome(action, Ended.REFUSED, message=said)
            else:
                if not self._order.dry_run or self._engine.previews(action):
                    return await self._submit(state, sql)
                outcome = self._outcome(action, Ended.PLANNED, message=sql)
            state = await self._tell(state, outcome)
        return state

    async def _submit(self, state: RemoteState, sql: str) -> Park:
        since, before = await self._ctx.in_thread(_measured, self._lake)
        held = await self._engine.begin(sql)
        self._run.step("statement_begun")
        after = replace(
            state.holding(held),
            sql=sql,
            polls=0,
            attempt_no=self._job.attempt_no,
            submitted_at=self._clock.now().isoformat(),
            since=since,
            before=before,
        )
        self._ctx.log.info("statement_submitted", query_id=after.query_id, engine=self._engine.name)
        self._show(after)
        return Park(after.to_json(), 0.0)

    async def _follow(self, state: RemoteState) -> Park | RemoteState:
        self._show(state)
        step = await self._engine.look(
            state.held, state.sql, again=self._job.attempt_no > state.attempt_no
        )
        self._run.step("statement_looked_at")
        match step:
            case Running():
                return self._go_on(state, step)
            case Finished():
                return await self._end(state, step)
            case Failed():
                return await self._failed(state, step)
            case _:
                assert_never(step)

    def _go_on(self, state: RemoteState, running: Running) -> Park:
        polls = state.polls + 1
        pause = 0.0 if running.at_once else poll_delay(polls, self._engine.patience)
        after = replace(state.holding(running.held), polls=polls, attempt_no=self._job.attempt_no)
        return Park(after.to_json(), pause)

    async def _end(self, state: RemoteState, finished: Finished) -> Park | RemoteState:
        action, seconds = self._action(state), self._seconds(state)
        if self._order.dry_run:
            outcome = self._planned(action, finished)
        else:
            outcome = await self._ctx.in_thread(self._done, action, state, finished)
        told = await self._tell(state, replace(outcome, message=state.sql, seconds=seconds))
        await self._release(state)
        return await self._begin(told)

    def _done(self, action: Action, state: RemoteState, finished: Finished) -> Outcome:
        """Measured on the table; only of orphans, which no table knows of, is the engine's own word
        taken."""
        from penstock.maintenance.engines.adoption import changes
        from penstock.maintenance.engines.embedded import MAX_FILES_TOLD, measure

        table, before, files = self._lake.load(), state.before, _files(finished)
        after = measure(table)
        idle = after == before and not files
        return self._outcome(
            action,
            Ended.NOTHING_TO_DO if idle else Ended.COMPLETED,
            **changes(table, state.since, lambda summary: self._engine.made(state.held, summary)),
            rows=after.get("rows", 0),
            expired_snapshots=max(0, before["snapshots"] - after["snapshots"]),
            deleted_files=len(files),
            files=files[:MAX_FILES_TOLD],
            files_left_out=max(0, len(files) - MAX_FILES_TOLD),
            before=before,
            after=after,
        )

    def _planned(self, action: Action, finished: Finished) -> Outcome:
        from penstock.maintenance.engines.embedded import MAX_FILES_TOLD

        files = _files(finished)
        return self._outcome(
            action,
            Ended.PLANNED if files else Ended.NOTHING_TO_DO,
            deleted_files=len(files),
            files=files[:MAX_FILES_TOLD],
            files_left_out=max(0, len(files) - MAX_FILES_TOLD),
        )

    async def _failed(self, state: RemoteState, failed: Failed) -> Park | RemoteState:
        error = failed.error
        if await self._ctx.in_thread(self._landed, state):
            self._ctx.log.info("statement_adopted", query_id=state.query_id, error=error.message)
            return await self._end(state, Finished())
        if not transient(error):
            outcome = self._outcome(self._action(state), _status(error), message=error.message)
            told = await self._tell(state, replace(outcome, seconds=self._seconds(state)))
            await self._release(state)
            return await self._begin(told)
        if self._job.attempt_no > state.attempt_no:
            return await self._begin(state.holding(Held(query_id="")))
        raise error

    def _landed(self, state: RemoteState) -> bool:
        from penstock.maintenance.engines.adoption import REWRITES, landed

        rewrites = not self._order.dry_run and self._action(state).name in REWRITES
        return rewrites and landed(
            self._lake, state.since, lambda summary: self._engine.made(state.held, summary)
        )

    async def _tell(self, state: RemoteState, outcome: Outcome) -> RemoteState:
        await self._plane.action_ended(self._ctx.fence, outcome.to_json())
        return state.after(outcome)

    async def _release(self, state: RemoteState) -> None:
        """The result is told; an engine that cannot be reached now forgets by itself."""
        try:
            await self._engine.release(state.held)
        except PenstockError as e:
            self._ctx.log.info("statement_not_released", query_id=state.query_id, error=e.message)

    def _action(self, state: RemoteState) -> Action:
        return self._order.actions[len(state.ended)]

    def _outcome(self, action: Action, status: Ended, **more: Any) -> Outcome:
        return Outcome(action=action.name, status=status, engine=self._engine.name, **more)

    def _sql(self, action: Action) -> str:
        from penstock.maintenance.engines.adoption import check_elsewhere

        table = self._lake.load()
        check_elsewhere(self._lake, table, action)
        return self._engine.statement(
            action, self._order.name, table, self._run, dry_run=self._order.dry_run
        )

    def _seconds(self, state: RemoteState) -> float:
        return (self._clock.now() - datetime.fromisoformat(state.submitted_at)).total_seconds()

    def _show(self, state: RemoteState) -> None:
        done = 100 * len(state.ended) / len(self._order.actions)
        self._ctx.progress(
            percent=done, action=str(self._action(state).name), query_id=state.query_id
        )

    def _ends(self) -> bool:
        """Whether the job ends with this attempt; one that lost it leaves the statement to its
        heir."""
        try:
            self._ctx.check()
        except Stopped as e:
            return e.why is not Stop.LOST
        return False


def _measured(lake: TableAccess) -> tuple[int, dict[str, int]]:
    from penstock.maintenance.engines.adoption import measured

    return measured(lake)


def _files(finished: Finished) -> tuple[str, ...]:
    return tuple(str(row[ORPHAN]) for row in finished.rows if ORPHAN in row)


def _status(error: PenstockError) -> Ended:
    match error:
        case CommitConflict():
            return Ended.ABANDONED
        case CommitUnknown():
            return Ended.UNKNOWN
        case _:
            return Ended.FAILED
