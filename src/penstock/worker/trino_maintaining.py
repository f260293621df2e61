"""Maintenance on a Trino: the job is parked between two looks at its query, and the query's handle is its state.

A look begins with what the state says and ends with the next state, so whoever dies in the middle has lost nothing and
any worker goes on: it adopts the query. The query is registered first and its handle written down; the next look starts
it. An attempt that ends the job cancels the query first; where nobody holds the job, a job of its own is sent to.
What was done is measured on the table itself, before and after.

A query that Trino lost may have committed before: then the table has a snapshot that names it, which counts. If there
is none, the attempt fails and the next one begins a new query, so attempts bound the queries.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, assert_never

from penstock.kit.clock import SYSTEM, Clock
from penstock.maintenance.action import Ended, Name, Outcome
from penstock.maintenance.errors import Refused
from penstock.maintenance.trino_sql import statement
from penstock.sources.trino.client import Client
from penstock.sources.trino.config import Config
from penstock.sources.trino.headers import Session
from penstock.sources.trino.unload import Failed, Finished, Running, Unload, poll_delay
from penstock.sources.trino.wire import Wire
from penstock.worker.attempt import Stop, Stopped
from penstock.worker.handlers import Park
from penstock.worker.naming import transient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.maintenance.action import Action
    from penstock.maintenance.lake import Lake
    from penstock.maintenance.order import Order
    from penstock.maintenance.run import Run
    from penstock.worker.context import JobContext
    from penstock.worker.handlers import Job
    from penstock.worker.plane import Plane

CLIENT_TIMEOUT = 300.0
QUERY_ID = "trino_query_id"
"""By this name a snapshot says which of Trino's queries made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteState:
    """How far a job is: the actions that ended, and the query of the next one.

    `attempt_no` is the attempt that last saw the query alive; a later one that finds it dead begins anew.
    """

    ended: tuple[tuple[str, str, str], ...] = ()
    leftovers: int = 0
    query_id: str = ""
    next_uri: str = ""
    polls: int = 0
    attempt_no: int = 0
    submitted_at: str = ""
    before: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, state: Mapping[str, Any]) -> RemoteState:
        known = {name: state[name] for name in cls.__slots__ if name in state}
        return cls(**known | {"ended": tuple(tuple(each) for each in state.get("ended", ()))})

    @property
    def outcomes(self) -> list[Outcome]:
        return [Outcome(action=Name(a), status=Ended(s), engine="trino", message=m) for a, s, m in self.ended]

    def after(self, outcome: Outcome) -> RemoteState:
        told = (str(outcome.action), str(outcome.status), outcome.message)
        return RemoteState(ended=(*self.ended, told), leftovers=self.leftovers)


class TrinoEngine:
    """`told` is the engine's configuration: url, user, catalog, and a password or token where there is one."""

    def __init__(self, told: Mapping[str, Any], trace: str) -> None:
        self.catalog = str(told["catalog"])
        self.patience = float(told.get("client_timeout") or CLIENT_TIMEOUT)
        secrets = {name: told[name] for name in ("password", "token") if name in told}
        config = Config(
            url=told["url"],
            user=told.get("user", "penstock"),
            role_catalog=None,
            source="penstock",
            client_tags=("penstock-maintenance",),
            allow_http=str(told.get("allow_http", "false")).lower() == "true",
            **secrets,
        )
        self._client = Client(config, Wire(config))
        self.queries = Unload(self._client, Session(role=None, trace=trace))

    async def __aenter__(self) -> TrinoEngine:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()


class TrinoMaintenance:
    """One look at one job."""

    def __init__(
        self,
        job: Job,
        ctx: JobContext,
        plane: Plane,
        order: Order,
        engine: TrinoEngine,
        lake: Lake,
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
                await self._engine.queries.cancel(state.query_id, state.next_uri)
            raise

    async def _begin(self, state: RemoteState) -> Park | RemoteState:
        while len(state.ended) < len(self._order.actions):
            self._ctx.check()
            action = self._action(state)
            try:
                sql = self._sql(action)
            except Refused as e:
                said = Outcome(action=action.name, status=Ended.REFUSED, engine="trino", message=e.message)
            else:
                if not self._order.dry_run:
                    return await self._submit(state, sql)
                said = Outcome(action=action.name, status=Ended.PLANNED, engine="trino", message=sql)
            state = await self._tell(state, said)
        return state

    async def _submit(self, state: RemoteState, sql: str) -> Park:
        before = await self._ctx.in_thread(_measured, self._lake)
        submitted = await self._engine.queries.submit(sql)
        after = replace(
            state,
            query_id=submitted.query_id,
            next_uri=submitted.next_uri,
            polls=0,
            attempt_no=self._job.attempt_no,
            submitted_at=self._clock.now().isoformat(),
            before=before,
        )
        self._ctx.log.info("query_submitted", query_id=after.query_id)
        self._show(after)
        return Park(after.to_json(), 0.0)

    async def _follow(self, state: RemoteState) -> Park | RemoteState:
        self._show(state)
        step = await self._engine.queries.poll(state.next_uri)
        match step:
            case Running():
                return self._go_on(state, step)
            case Finished():
                return await self._end(state)
            case Failed():
                return await self._failed(state, step)
            case _:
                assert_never(step)

    def _go_on(self, state: RemoteState, running: Running) -> Park:
        polls = state.polls + 1
        pause = 0.0 if running.at_once else poll_delay(polls, self._engine.patience)
        after = replace(state, next_uri=running.next_uri, polls=polls, attempt_no=self._job.attempt_no)
        return Park(after.to_json(), pause)

    async def _end(self, state: RemoteState) -> Park | RemoteState:
        after = await self._ctx.in_thread(_measured, self._lake)
        action, before = self._action(state), state.before
        outcome = Outcome(
            action=action.name,
            status=Ended.NOTHING_TO_DO if after == before else Ended.COMPLETED,
            engine="trino",
            rewritten_files=max(0, before.get("files", 0) - after.get("files", 0)),
            expired_snapshots=max(0, before["snapshots"] - after["snapshots"]),
            before=before,
            after=after,
            message=self._sql(action),
            seconds=(self._clock.now() - datetime.fromisoformat(state.submitted_at)).total_seconds(),
        )
        return await self._begin(await self._tell(state, outcome))

    async def _failed(self, state: RemoteState, failed: Failed) -> Park | RemoteState:
        if await self._ctx.in_thread(_landed, self._lake, state.query_id):
            self._ctx.log.info("query_adopted", query_id=state.query_id)
            return await self._end(state)
        if not transient(failed.error):
            name, said = self._action(state).name, failed.error.message
            outcome = Outcome(action=name, status=Ended.FAILED, engine="trino", message=said)
            return await self._begin(await self._tell(state, outcome))
        if self._job.attempt_no > state.attempt_no:
            return await self._begin(replace(state, query_id=""))
        raise failed.error

    async def _tell(self, state: RemoteState, outcome: Outcome) -> RemoteState:
        await self._plane.action_ended(self._ctx.fence, outcome.to_json())
        return state.after(outcome)

    def _action(self, state: RemoteState) -> Action:
        return self._order.actions[len(state.ended)]

    def _sql(self, action: Action) -> str:
        return statement(action, self._order.name, self._engine.catalog, self._run)

    def _show(self, state: RemoteState) -> None:
        done = 100 * len(state.ended) / len(self._order.actions)
        self._ctx.progress(percent=done, action=str(self._action(state).name), query_id=state.query_id)

    def _ends(self) -> bool:
        """Whether the job ends with this attempt; one that lost it leaves the query to its heir."""
        try:
            self._ctx.check()
        except Stopped as e:
            return e.why is not Stop.LOST
        return False


def _measured(lake: Lake) -> dict[str, int]:
    from penstock.maintenance.embedded import measure

    return measure(lake.load())


def _landed(lake: Lake, query_id: str) -> bool:
    snapshots = lake.load().metadata.snapshots
    return any(s.summary is not None and s.summary.additional_properties.get(QUERY_ID) == query_id for s in snapshots)
