"""The maintenance job: the actions of one table, one after the other, each told to the control
plane as it ends.

An attempt that takes over from one that died goes on where that one was: what had ended is not done
again. What had not is planned anew on the table as it is, so a part that was committed stays.

The embedded engine works in a thread of its own and stops at its next step when the job is taken
away; whatever it would still commit is refused, for each swap goes through the control plane under
the fence, or asks for the fence right before. A remote engine is looked at now and then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.jobs.handler import Answer, Park, Result, Stop, Stopped
from penstock.kit.errors import StaleAttempt
from penstock.maintenance.actions.model import Ended, Name, Outcome
from penstock.maintenance.errors import MaintenanceFailed, Refused
from penstock.maintenance.payloads import EMBEDDED, Order

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from penstock.jobs.handler import Job, JobContext
    from penstock.maintenance.actions.context import Run
    from penstock.maintenance.actions.model import Action
    from penstock.maintenance.control_plane import MaintenanceControlPlane
    from penstock.maintenance.tables.table_access import TableAccess

T = TypeVar("T")
_TRIED_AGAIN = frozenset({Ended.FAILED, Ended.UNKNOWN})


class Maintainer:
    def __init__(
        self,
        planes: Callable[[], MaintenanceControlPlane],
        *,
        step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._planes = planes
        self._step = step

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        from penstock.maintenance.actions.context import Run

        order = Order.read(job.payload)
        async with self._planes() as plane:
            try:
                told = await plane.catalog(ctx.fence)
                run = Run(
                    job_id=job.job_id,
                    attempt=ctx.fence.attempt_id.hex,
                    fenced=told["shared"],
                    check=ctx.check,
                    step=self._step,
                )
                lake = await _lake(plane, order, ctx, run, told)
                if order.engine != EMBEDDED:
                    return await self._look(job, plane, order, lake, run, ctx)
                return Result(await self._work(plane, order, lake, run, ctx))
            except StaleAttempt:
                raise Stopped(Stop.LOST) from None

    async def _work(
        self,
        plane: MaintenanceControlPlane,
        order: Order,
        lake: TableAccess,
        run: Run,
        ctx: JobContext,
    ) -> dict[str, Any]:
        left = 0 if order.dry_run else await ctx.in_thread(_tidy, lake, run)
        earlier = await _ended_before(plane, ctx)
        outcomes: list[Outcome] = []
        for number, action in enumerate(order.actions):
            ctx.check()
            ctx.progress(percent=100 * number / len(order.actions), action=str(action.name))
            if action.name in earlier:
                ctx.log.info(
                    "action_ended_before", action=action.name, status=earlier[action.name].status
                )
                outcomes.append(earlier[action.name])
                continue
            outcome = await ctx.in_thread(_act, lake, run, action, order.dry_run)
            await plane.action_ended(ctx.fence, outcome.to_json())
            self._step("action_told")
            outcomes.append(outcome)
        ended_before = [str(action.name) for action in order.actions if action.name in earlier]
        return _result(order, left, outcomes) | {"ended_by_earlier_attempts": ended_before}

    async def _look(
        self,
        job: Job,
        plane: MaintenanceControlPlane,
        order: Order,
        lake: TableAccess,
        run: Run,
        ctx: JobContext,
    ) -> Answer:
        """A remote engine works while nobody holds the job."""
        from penstock.maintenance.engines.registry import open_engine
        from penstock.maintenance.remote_handlers import RemoteMaintenance, RemoteState

        if job.state is None:
            state = RemoteState(
                leftovers=0 if order.dry_run else await ctx.in_thread(_tidy, lake, run)
            )
        else:
            state = RemoteState.read(job.state)
        told = (await plane.catalog(ctx.fence))["engine"]
        async with open_engine(told, str(job.job_id)) as engine:
            answer = await RemoteMaintenance(job, ctx, plane, order, engine, lake, run).look(state)
            if isinstance(answer, Park):
                return answer
            return Result(_result(order, answer.leftovers, answer.outcomes(engine.name)))


class RemoteCanceller:
    """Ends the statement of a job that ended while nobody held it."""

    def __init__(self, planes: Callable[[], MaintenanceControlPlane]) -> None:
        self._planes = planes

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        from penstock.maintenance.engines.registry import open_engine
        from penstock.maintenance.remote_handlers import RemoteState

        state = RemoteState.read(job.payload["state"])
        if not state.query_id:
            return Result()
        async with self._planes() as plane:
            told = (await plane.catalog(ctx.fence))["engine"]
        async with open_engine(told, str(job.job_id)) as engine:
            await engine.cancel(state.held)
        return Result({"query_id": state.query_id})


async def _ended_before(plane: MaintenanceControlPlane, ctx: JobContext) -> dict[Name, Outcome]:
    """Actions that earlier attempts ended well, or in a way that another try does not change."""
    outcomes = [
        Outcome(
            action=Name(ended["action"]),
            status=Ended(ended["status"]),
            engine=ended["engine"],
            message=ended["message"],
        )
        for ended in await plane.ended_actions(ctx.fence)
    ]
    return {outcome.action: outcome for outcome in outcomes if outcome.status not in _TRIED_AGAIN}


def _result(order: Order, left: int, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    _check(outcomes)
    return {"table": str(order.name), "leftovers_removed": left, "actions": _statuses(outcomes)}


def _check(outcomes: Sequence[Outcome]) -> None:
    """A job failed when an action did, when nobody knows of one, or when the table refused them
    all."""
    bad = [each for each in outcomes if each.status in (Ended.FAILED, Ended.UNKNOWN)]
    refused = [each for each in outcomes if each.status is Ended.REFUSED]
    if bad:
        raise MaintenanceFailed(f"{bad[0].action}: {bad[0].message}", actions=_statuses(outcomes))
    if len(refused) == len(outcomes):
        raise Refused(f"{refused[0].action}: {refused[0].message}", actions=_statuses(outcomes))


def _statuses(outcomes: Sequence[Outcome]) -> dict[str, str]:
    return {str(outcome.action): str(outcome.status) for outcome in outcomes}


def _tidy(lake: TableAccess, run: Run) -> int:
    from penstock.maintenance.actions.leftovers import remove_leftovers

    return remove_leftovers(lake, run)


def _act(lake: TableAccess, run: Run, action: Action, dry_run: bool) -> Outcome:
    """The engine is loaded by the first job that needs it."""
    from penstock.maintenance.engines import embedded

    return embedded.plan(lake, run, action) if dry_run else embedded.execute(lake, run, action)


async def _lake(
    plane: MaintenanceControlPlane, order: Order, ctx: JobContext, run: Run, told: Mapping[str, Any]
) -> TableAccess:
    """A table of the shared catalog is reached by way of the control plane, any other one directly."""
    from penstock.maintenance.tables.catalogs import CatalogConfig, open_catalog
    from penstock.maintenance.tables.neighbors import TablePointer
    from penstock.maintenance.tables.table_access import CatalogTableAccess, FencedTableAccess

    loop, fence = asyncio.get_running_loop(), ctx.fence

    def ask(question: Coroutine[Any, Any, T]) -> T:
        """From the engine's thread."""
        return asyncio.run_coroutine_threadsafe(question, loop).result()

    def others() -> list[TablePointer]:
        return [TablePointer.read(table) for table in ask(plane.other_tables(fence))]

    identifier = order.name.identifier
    if told["shared"]:
        return FencedTableAccess(
            identifier,
            properties=told["properties"],
            current=lambda: ask(plane.pointer(fence)),
            swap=lambda old, new: ask(plane.swap(fence, old, new)),
            others=others,
            run=run,
        )
    config = CatalogConfig(
        name=told["name"], type=told["type"], uri=told["uri"], properties=told["properties"]
    )
    opened = await ctx.in_thread(lambda: open_catalog(config, mark=run.mark))
    return CatalogTableAccess(
        opened, identifier, fence=lambda: ask(plane.hold(fence)), elsewhere=others
    )
