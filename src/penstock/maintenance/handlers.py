"""Handlers of maintenance jobs: run the actions of one table in order and report each outcome.

An attempt that replaces a dead one skips the actions that ended. The others are planned again on
the current table, so what was already committed stays.

The embedded engine runs in a thread and stops at its next step when the job is lost. It cannot
commit afterwards: each swap goes through the control plane under the fence, or checks the fence
right before. A remote engine is polled while the job is parked in between.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from penstock.jobs.handler import Answer, Park, Result, Stop, Stopped
from penstock.kit.errors import StaleAttempt
from penstock.maintenance.actions.model import Ended, Name, Outcome
from penstock.maintenance.errors import MaintenanceFailed, Refused
from penstock.maintenance.payloads import EMBEDDED, Order

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from penstock.jobs.handler import Job, JobContext
    from penstock.kit.json_value import JsonObject
    from penstock.maintenance.actions.context import ActionContext
    from penstock.maintenance.actions.model import Action
    from penstock.maintenance.control_plane import CatalogCredentials, MaintenanceControlPlane
    from penstock.maintenance.tables.catalog.table_access import TableAccess

T = TypeVar("T")
_TRIED_AGAIN = frozenset({Ended.FAILED, Ended.UNKNOWN})


class Maintainer:
    def __init__(
        self,
        connect: Callable[[], MaintenanceControlPlane],
        *,
        step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._connect = connect
        self._step = step

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        from penstock.maintenance.actions.context import ActionContext

        order = Order.read(job.payload)
        async with self._connect() as control_plane:
            try:
                catalog = await control_plane.catalog(ctx.fence)
                action_context = ActionContext(
                    job_id=job.job_id,
                    attempt=ctx.fence.attempt_id.hex,
                    fenced=catalog["shared"],
                    check=ctx.check,
                    step=self._step,
                )
                table_access = await _open_table_access(
                    control_plane, order, ctx, action_context, catalog
                )
                if order.engine != EMBEDDED:
                    return await self._poll_remote(
                        job, control_plane, order, table_access, action_context, ctx
                    )
                return Result(
                    await self._work(control_plane, order, table_access, action_context, ctx)
                )
            except StaleAttempt:
                raise Stopped(Stop.LOST) from None

    async def _work(
        self,
        control_plane: MaintenanceControlPlane,
        order: Order,
        table_access: TableAccess,
        action_context: ActionContext,
        ctx: JobContext,
    ) -> JsonObject:
        left = (
            0
            if order.dry_run
            else await ctx.in_thread(_remove_leftovers, table_access, action_context)
        )
        earlier = await _ended_before(control_plane, ctx)
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
            outcome = await ctx.in_thread(
                _run_action, table_access, action_context, action, order.dry_run
            )
            await control_plane.action_ended(ctx.fence, outcome.to_json())
            self._step("action_told")
            outcomes.append(outcome)
        ended_before = [str(action.name) for action in order.actions if action.name in earlier]
        return {**_result(order, left, outcomes), "ended_by_earlier_attempts": [*ended_before]}

    async def _poll_remote(
        self,
        job: Job,
        control_plane: MaintenanceControlPlane,
        order: Order,
        table_access: TableAccess,
        action_context: ActionContext,
        ctx: JobContext,
    ) -> Answer:
        """Poll a remote engine; its statement runs while the job is parked."""
        from penstock.maintenance.engines.registry import open_engine
        from penstock.maintenance.remote_handlers import RemoteMaintenance, RemoteState

        if job.state is None:
            state = RemoteState(
                leftovers=0
                if order.dry_run
                else await ctx.in_thread(_remove_leftovers, table_access, action_context)
            )
        else:
            state = RemoteState.read(job.state)
        catalog = await control_plane.catalog(ctx.fence)
        async with open_engine(_engine(catalog), str(job.job_id)) as engine:
            answer = await RemoteMaintenance(
                job, ctx, control_plane, order, engine, table_access, action_context
            ).look(state)
            if isinstance(answer, Park):
                return answer
            return Result(_result(order, answer.leftovers, answer.outcomes(engine.name)))


class RemoteCanceller:
    """Cancels the remote statement of a job that ended while it was parked."""

    def __init__(self, connect: Callable[[], MaintenanceControlPlane]) -> None:
        self._connect = connect

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        from penstock.maintenance.engines.registry import open_engine
        from penstock.maintenance.remote_handlers import RemoteState

        state = RemoteState.read(job.payload["state"])
        if not state.query_id:
            return Result()
        async with self._connect() as control_plane:
            catalog = await control_plane.catalog(ctx.fence)
        async with open_engine(_engine(catalog), str(job.job_id)) as engine:
            await engine.cancel(state.query)
        return Result({"query_id": state.query_id})


async def _ended_before(
    control_plane: MaintenanceControlPlane, ctx: JobContext
) -> dict[Name, Outcome]:
    """Actions of earlier attempts whose outcome is final; failed and unknown ones are retried."""
    outcomes = [
        Outcome(
            action=Name(ended["action"]),
            status=Ended(ended["status"]),
            engine=ended["engine"],
            message=ended["message"],
        )
        for ended in await control_plane.ended_actions(ctx.fence)
    ]
    return {outcome.action: outcome for outcome in outcomes if outcome.status not in _TRIED_AGAIN}


def _result(order: Order, left: int, outcomes: Sequence[Outcome]) -> JsonObject:
    _check(outcomes)
    return {"table": str(order.name), "leftovers_removed": left, "actions": {**_statuses(outcomes)}}


def _check(outcomes: Sequence[Outcome]) -> None:
    """Raise if an action failed, if the outcome of one is unknown, or if all were refused."""
    bad = [outcome for outcome in outcomes if outcome.status in (Ended.FAILED, Ended.UNKNOWN)]
    refused = [outcome for outcome in outcomes if outcome.status is Ended.REFUSED]
    if bad:
        raise MaintenanceFailed(f"{bad[0].action}: {bad[0].message}", actions=_statuses(outcomes))
    if len(refused) == len(outcomes):
        raise Refused(f"{refused[0].action}: {refused[0].message}", actions=_statuses(outcomes))


def _statuses(outcomes: Sequence[Outcome]) -> dict[str, str]:
    return {str(outcome.action): str(outcome.status) for outcome in outcomes}


def _engine(catalog: CatalogCredentials) -> Mapping[str, str]:
    if catalog["engine"] is None:
        raise AssertionError("the control plane sends the engine of a remote job")
    return catalog["engine"]


def _remove_leftovers(table_access: TableAccess, action_context: ActionContext) -> int:
    from penstock.maintenance.actions.leftovers import remove_leftovers

    return remove_leftovers(table_access, action_context)


def _run_action(
    table_access: TableAccess, action_context: ActionContext, action: Action, dry_run: bool
) -> Outcome:
    """Imports the engine on first use."""
    from penstock.maintenance.engines import embedded

    return (
        embedded.plan(table_access, action_context, action)
        if dry_run
        else embedded.execute(table_access, action_context, action)
    )


async def _open_table_access(
    control_plane: MaintenanceControlPlane,
    order: Order,
    ctx: JobContext,
    action_context: ActionContext,
    catalog: CatalogCredentials,
) -> TableAccess:
    """Access through the control plane for the shared catalog, otherwise directly."""
    from penstock.maintenance.tables.catalog.catalogs import CatalogConfig, open_catalog
    from penstock.maintenance.tables.catalog.table_access import (
        CatalogTableAccess,
        FencedTableAccess,
    )
    from penstock.maintenance.tables.ownership.neighbors import TablePointer

    loop, fence = asyncio.get_running_loop(), ctx.fence

    def call(request: Coroutine[object, None, T]) -> T:
        """Run a coroutine on the event loop and wait for it, from the engine's thread."""
        return asyncio.run_coroutine_threadsafe(request, loop).result()

    def others() -> list[TablePointer]:
        return [TablePointer.read(table) for table in call(control_plane.other_tables(fence))]

    identifier = order.name.identifier
    if catalog["shared"]:
        return FencedTableAccess(
            identifier,
            properties=catalog["properties"],
            current=lambda: call(control_plane.pointer(fence)),
            swap=lambda old, new: call(control_plane.swap(fence, old, new)),
            others=others,
            context=action_context,
        )
    config = CatalogConfig(
        name=catalog["name"],
        type=catalog["type"],
        uri=catalog["uri"],
        properties=catalog["properties"],
    )
    opened = await ctx.in_thread(lambda: open_catalog(config, mark=action_context.mark))
    return CatalogTableAccess(
        opened, identifier, fence=lambda: call(control_plane.hold(fence)), elsewhere=others
    )
