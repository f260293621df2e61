"""Maintenance on a remote engine: the job is parked between two polls of its statement.

The job's state holds the handle of the statement. Each poll starts from the stored state and ends
with the next one, so any worker can continue after a crash and adopts the statement. The handle is
stored first; the next poll starts the statement. An attempt that ends the job cancels the statement
first; for a parked job, a separate cleanup job does. The changes are measured on the table, before
and after.

A statement that the engine lost may have committed; then the table has its snapshot, and it counts
as finished. Otherwise the attempt fails and the next one starts a new statement, so the number of
attempts limits the number of statements.
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
from penstock.maintenance.engines.contract import Failed, Finished, RemoteQuery, Running
from penstock.maintenance.errors import CommitConflict, CommitUnknown, Refused
from penstock.sources.errors import transient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.jobs.handler import Job, JobContext
    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.actions.model import Action
    from penstock.maintenance.control_plane import MaintenanceControlPlane
    from penstock.maintenance.engines.contract import RemoteEngine
    from penstock.maintenance.payloads import Order
    from penstock.maintenance.tables.catalog.table_access import TableAccess

CANCEL_SECONDS = 10.0
ORPHAN = "orphan_file_location"
"""The result column with the files that the engine removed, or would remove."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteState:
    """The progress of a job: the actions that ended, and the statement of the current one.

    `attempt_no` is the attempt that last saw the statement running; a later attempt that finds it
    lost starts a new one. `since` is the table's snapshot when the statement was submitted.
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
        fields = {name: state[name] for name in cls.__slots__ if name in state}
        return cls(**fields | {"ended": tuple(tuple(item) for item in state.get("ended", ()))})

    @property
    def query(self) -> RemoteQuery:
        return RemoteQuery(query_id=self.query_id, handle=self.handle)

    def with_query(self, query: RemoteQuery) -> RemoteState:
        return replace(self, query_id=query.query_id, handle=dict(query.handle))

    def after(self, outcome: Outcome) -> RemoteState:
        entry = (str(outcome.action), str(outcome.status), outcome.message)
        return RemoteState(ended=(*self.ended, entry), leftovers=self.leftovers)

    def outcomes(self, engine: str) -> list[Outcome]:
        return [
            Outcome(action=Name(a), status=Ended(s), engine=engine, message=m)
            for a, s, m in self.ended
        ]


class RemoteMaintenance:
    """Polls the remote statement of one job once."""

    def __init__(
        self,
        job: Job,
        ctx: JobContext,
        control_plane: MaintenanceControlPlane,
        order: Order,
        engine: RemoteEngine,
        table_access: TableAccess,
        action_context: ActionContext,
        *,
        clock: Clock = SYSTEM,
    ) -> None:
        self._job = job
        self._ctx = ctx
        self._control_plane = control_plane
        self._order = order
        self._engine = engine
        self._table_access = table_access
        self._action_context = action_context
        self._clock = clock

    async def look(self, state: RemoteState) -> Park | RemoteState:
        """The next state to park the job with, or the final one when all actions ended."""
        try:
            return await self._begin(state) if not state.query_id else await self._follow(state)
        except asyncio.CancelledError:
            if state.query_id and self._ends_job():
                await self._cancel(state)
            raise

    async def _cancel(self, state: RemoteState) -> None:
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._engine.cancel(state.query)
        except (PenstockError, TimeoutError) as e:
            self._ctx.log.warning("statement_not_cancelled", query_id=state.query_id, error=str(e))

    async def _begin(self, state: RemoteState) -> Park | RemoteState:
        while len(state.ended) < len(self._order.actions):
            self._ctx.check()
            action = self._action(state)
            try:
                sql = await self._ctx.in_thread(self._sql, action)
            except Refused as e:
                message = e.message if e.hint is None else f"{e.message} {e.hint}"
                outcome = self._outcome(action, Ended.REFUSED, message=message)
            else:
                if not self._order.dry_run or self._engine.previews(action):
                    return await self._submit(state, sql)
                outcome = self._outcome(action, Ended.PLANNED, message=sql)
            state = await self._report(state, outcome)
        return state

    async def _submit(self, state: RemoteState, sql: str) -> Park:
        since, before = await self._ctx.in_thread(_measured, self._table_access)
        query = await self._engine.begin(sql)
        self._action_context.step("statement_begun")
        after = replace(
            state.with_query(query),
            sql=sql,
            polls=0,
            attempt_no=self._job.attempt_no,
            submitted_at=self._clock.now().isoformat(),
            since=since,
            before=before,
        )
        self._ctx.log.info("statement_submitted", query_id=after.query_id, engine=self._engine.name)
        self._show_progress(after)
        return Park(after.to_json(), 0.0)

    async def _follow(self, state: RemoteState) -> Park | RemoteState:
        self._show_progress(state)
        step = await self._engine.look(
            state.query, state.sql, again=self._job.attempt_no > state.attempt_no
        )
        self._action_context.step("statement_looked_at")
        match step:
            case Running():
                return self._keep_polling(state, step)
            case Finished():
                return await self._end(state, step)
            case Failed():
                return await self._failed(state, step)
            case _:
                assert_never(step)

    def _keep_polling(self, state: RemoteState, running: Running) -> Park:
        polls = state.polls + 1
        pause = 0.0 if running.at_once else poll_delay(polls, self._engine.client_timeout)
        after = replace(
            state.with_query(running.held), polls=polls, attempt_no=self._job.attempt_no
        )
        return Park(after.to_json(), pause)

    async def _end(self, state: RemoteState, finished: Finished) -> Park | RemoteState:
        action, seconds = self._action(state), self._seconds(state)
        if self._order.dry_run:
            outcome = self._planned(action, finished)
        else:
            outcome = await self._ctx.in_thread(self._measured_outcome, action, state, finished)
        reported = await self._report(state, replace(outcome, message=state.sql, seconds=seconds))
        await self._release(state)
        return await self._begin(reported)

    def _measured_outcome(self, action: Action, state: RemoteState, finished: Finished) -> Outcome:
        """Measured on the table. Only removed orphan files come from the engine's result, because
        the table does not list them."""
        from penstock.maintenance.engines.adoption import changes
        from penstock.maintenance.engines.embedded import MAX_FILES_LISTED, measure

        table, before, files = self._table_access.load(), state.before, _files(finished)
        after = measure(table)
        idle = after == before and not files
        return self._outcome(
            action,
            Ended.NOTHING_TO_DO if idle else Ended.COMPLETED,
            **changes(
                table, state.since, lambda summary: self._engine.owns_snapshot(state.query, summary)
            ),
            rows=after.get("rows", 0),
            expired_snapshots=max(0, before["snapshots"] - after["snapshots"]),
            deleted_files=len(files),
            files=files[:MAX_FILES_LISTED],
            files_left_out=max(0, len(files) - MAX_FILES_LISTED),
            before=before,
            after=after,
        )

    def _planned(self, action: Action, finished: Finished) -> Outcome:
        from penstock.maintenance.engines.embedded import MAX_FILES_LISTED

        files = _files(finished)
        return self._outcome(
            action,
            Ended.PLANNED if files else Ended.NOTHING_TO_DO,
            deleted_files=len(files),
            files=files[:MAX_FILES_LISTED],
            files_left_out=max(0, len(files) - MAX_FILES_LISTED),
        )

    async def _failed(self, state: RemoteState, failed: Failed) -> Park | RemoteState:
        error = failed.error
        if await self._ctx.in_thread(self._landed, state):
            self._ctx.log.info("statement_adopted", query_id=state.query_id, error=error.message)
            return await self._end(state, Finished())
        if not transient(error):
            outcome = self._outcome(self._action(state), _status(error), message=error.message)
            reported = await self._report(state, replace(outcome, seconds=self._seconds(state)))
            await self._release(state)
            return await self._begin(reported)
        if self._job.attempt_no > state.attempt_no:
            return await self._begin(state.with_query(RemoteQuery(query_id="")))
        raise error

    def _landed(self, state: RemoteState) -> bool:
        from penstock.maintenance.engines.adoption import REWRITES, landed

        rewrites = not self._order.dry_run and self._action(state).name in REWRITES
        return rewrites and landed(
            self._table_access,
            state.since,
            lambda summary: self._engine.owns_snapshot(state.query, summary),
        )

    async def _report(self, state: RemoteState, outcome: Outcome) -> RemoteState:
        await self._control_plane.action_ended(self._ctx.fence, outcome.to_json())
        return state.after(outcome)

    async def _release(self, state: RemoteState) -> None:
        """Best effort after the result is reported: the engine drops the statement by itself."""
        try:
            await self._engine.release(state.query)
        except PenstockError as e:
            self._ctx.log.info("statement_not_released", query_id=state.query_id, error=e.message)

    def _action(self, state: RemoteState) -> Action:
        return self._order.actions[len(state.ended)]

    def _outcome(self, action: Action, status: Ended, **more: Any) -> Outcome:
        return Outcome(action=action.name, status=status, engine=self._engine.name, **more)

    def _sql(self, action: Action) -> str:
        from penstock.maintenance.engines.adoption import check_elsewhere

        table = self._table_access.load()
        check_elsewhere(self._table_access, table, action)
        return self._engine.statement(
            action, self._order.name, table, self._action_context, dry_run=self._order.dry_run
        )

    def _seconds(self, state: RemoteState) -> float:
        return (self._clock.now() - datetime.fromisoformat(state.submitted_at)).total_seconds()

    def _show_progress(self, state: RemoteState) -> None:
        done = 100 * len(state.ended) / len(self._order.actions)
        self._ctx.progress(
            percent=done, action=str(self._action(state).name), query_id=state.query_id
        )

    def _ends_job(self) -> bool:
        """Whether the job ends with this attempt. An attempt that lost the job leaves the statement
        to the next one."""
        try:
            self._ctx.check()
        except Stopped as e:
            return e.why is not Stop.LOST
        return False


def _measured(table_access: TableAccess) -> tuple[int, dict[str, int]]:
    from penstock.maintenance.engines.adoption import measured

    return measured(table_access)


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
