"""Gates: what runs when the last job of a group is over, exactly once and in the transaction that
ended it.

A gate counts nothing. A finisher deletes its live row, then locks the group's row, then asks in a
fresh statement whether any live member is left. Finishers of one group queue up at that lock, so
the last one sees an empty group and fires; a job that ends twice has no second row to delete. Locks
are taken in one order, lock keys first, live rows second and group rows third; a transaction that
holds a group's row skips live rows, waits only briefly for a lock key, and its handler takes none.
So there are no deadlocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import orjson

from penstock.jobs.model import JobSpec, Json, Status
from penstock.jobs.row_mapping import spec_from_json
from penstock.kit import logging
from penstock.kit.errors import InvalidInput
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import asyncpg

    from penstock.jobs.enqueuer import Enqueuer
    from penstock.kit.db import Tx

SQL = load("penstock.jobs.sql")
log = logging.get(__name__)
GATE_PAUSE = 10.0
"""Seconds until a gate whose handler failed is fired again."""
GATE_LOCK_MS = 200
"""How long a gate waits for the lock keys of the jobs that it opens; then it is fired again later.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """A gate that has just opened."""

    group_id: int
    name: str
    succeeded: bool
    payload: Json
    error: Json


class GateHandler(Protocol):
    """Runs in the transaction that fires the gate; what it writes commits with the last job's
    end.
    """

    async def __call__(self, tx: Tx, fired: Fired) -> None: ...


class Gates:
    def __init__(
        self,
        enqueuer: Enqueuer,
        ring: Callable[[str, int], None],
        handlers: Mapping[str, GateHandler] | None = None,
        *,
        notify: Callable[[str, int], None],
    ) -> None:
        """`ring` announces jobs that became ready; `notify` tells every process a name that is no
        queue, which a message transport does not carry."""
        self._enqueuer = enqueuer
        self._ring = ring
        self._notify = notify
        self._handlers = dict(handlers or {})
        self._announced: dict[str, str] = {}

    def handle(self, gate: str, handler: GateHandler, *, announce: str | None = None) -> None:
        """With `announce`, every end of a job in a group with this gate is announced under that
        name."""
        self._handlers[gate] = handler
        if announce is not None:
            self._announced[gate] = announce

    def check(self, gate: str | None) -> None:
        if gate is not None and gate not in self._handlers:
            raise InvalidInput(f"There is no gate {gate[:80]!r}.")

    async def settle(
        self, tx: Tx, ended: Sequence[asyncpg.Record], spawned: Sequence[JobSpec] = ()
    ) -> int:
        """Enqueue what the jobs that just ended have spawned, and advance their gates; returns
        how many fired.
        """
        await self.clean_up(tx, ended)
        group_ids = sorted({r["group_id"] for r in ended if r["group_id"] is not None})
        joined = {s.group_id for s in spawned if s.group_id is not None}
        if group_ids or joined:
            locked = await tx.fetch(SQL.group_lock, group_ids=sorted(joined.union(group_ids)))
            spawned = _joining(spawned, {r["group_id"] for r in locked if r["open"]})
            self._announce(tx, {r["gate"] for r in locked if r["group_id"] in group_ids})
        if spawned:
            await self._enqueuer.add(tx, spawned, force=True, ring=self._ring)
        for row in ended:
            if row["group_id"] is not None and row["status"] != Status.SUCCEEDED:
                cause = {
                    "code": "MEMBER_FAILED",
                    "message": f"Job {row['job_id']} did not succeed.",
                }
                await self.fail(tx, [row["group_id"]], cause)
        return await self.fire(tx, group_ids)

    def _announce(self, tx: Tx, gates: Iterable[str | None]) -> None:
        for name in {self._announced[gate] for gate in gates if gate in self._announced}:
            tx.after_commit(partial(self._notify, name, 0))

    async def fail(
        self, tx: Tx, group_ids: Sequence[int], error: Json, *, running: bool = False
    ) -> None:
        """Mark groups as failing and cancel the members that wait (with `running`, those that run
        as well)."""
        await tx.fetch(SQL.group_fail, group_ids=group_ids, error=orjson.dumps(error).decode())
        await self.cancel_members(tx, group_ids, running=running)

    async def cancel_members(
        self, tx: Tx, group_ids: Sequence[int], *, running: bool = False
    ) -> None:
        """Cancel the waiting members of failing groups; other groups are left alone."""
        error = orjson.dumps(
            {"code": "GROUP_FAILED", "message": "Another job of its group failed."}
        ).decode()
        gone = await tx.fetch(SQL.cancel_members, group_ids=group_ids, running=running, error=error)
        await self.clean_up(tx, gone)

    async def fire(self, tx: Tx, group_ids: Sequence[int]) -> int:
        return sum([await self._fire(tx, group_id) for group_id in group_ids])

    async def _fire(self, tx: Tx, group_id: int) -> bool:
        """A handler that fails undoes its gate, not the end of the job; the reaper fires the gate
        again."""
        try:
            async with tx.savepoint():
                row = await tx.row(SQL.group_fire, group_id=group_id)
                if row is not None:
                    await self._open(tx, row)
                return row is not None
        except Exception:
            log.exception("gate_failed", group_id=group_id, again_in=GATE_PAUSE)
            await tx.changed(SQL.group_look_later, group_id=group_id, seconds=GATE_PAUSE)
            return False

    async def clean_up(self, tx: Tx, gone: Sequence[asyncpg.Record]) -> None:
        """Enqueue the cleanup jobs of parked work that ended without its worker, such as a query
        that still runs elsewhere.
        """
        orphaned = [
            r
            for r in gone
            if r["status"] != Status.SUCCEEDED and "cleanup_kind" in r.keys()  # noqa: SIM118
        ]
        specs = [
            JobSpec(
                kind=r["cleanup_kind"],
                payload={
                    "job_id": r["job_id"],
                    "kind": r["kind"],
                    "payload": orjson.loads(r["payload"]),
                    "state": orjson.loads(r["state"]),
                },
            )
            for r in orphaned
            if r["cleanup_kind"] is not None
            and r["state"] not in (None, "null")
            and self._knows(r["cleanup_kind"])
        ]
        if specs:
            await self._enqueuer.add(tx, specs, force=True, ring=self._ring)

    def _knows(self, kind: str) -> bool:
        """Whether the kind is known here; one that only another release knows must not keep a
        job from ending.
        """
        if kind not in self._enqueuer.kinds:
            log.warning("clean_up_unknown", kind=kind)
        return kind in self._enqueuer.kinds

    async def _open(self, tx: Tx, row: asyncpg.Record) -> None:
        succeeded = row["status"] == Status.SUCCEEDED
        specs = [
            spec_from_json(s)
            for s in orjson.loads(row["opens"])["success" if succeeded else "failure"]
        ]
        if any(spec.lock_key for spec in specs):
            await tx.fetch(SQL.lock_timeout, milliseconds=GATE_LOCK_MS)
        if specs:
            await self._enqueuer.add(tx, specs, force=True, ring=self._ring)
        if any(spec.lock_key for spec in specs):
            await tx.fetch(SQL.lock_timeout, milliseconds=0)
        log.info(
            "gate_fired",
            group_id=row["group_id"],
            name=row["name"],
            succeeded=succeeded,
            opened=len(specs),
        )
        if row["gate"] is not None:
            fired = Fired(
                group_id=row["group_id"],
                name=row["name"],
                succeeded=succeeded,
                payload=orjson.loads(row["payload"]),
                error=None if row["error"] is None else orjson.loads(row["error"]),
            )
            await self._handlers[row["gate"]](tx, fired)


def _joining(spawned: Sequence[JobSpec], open_ids: set[int]) -> list[JobSpec]:
    """Spawned jobs without those that a failing or finished group would only cancel; the end
    that spawned them stands.
    """
    joining = [s for s in spawned if s.group_id is None or s.group_id in open_ids]
    if len(joining) < len(spawned):
        log.info("spawn_dropped", jobs=len(spawned) - len(joining))
    return joining
