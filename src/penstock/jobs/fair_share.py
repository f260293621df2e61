"""A share of the workers for each user: their jobs are put apart in the order of a queue, and
others come in between.

A job's place is a virtual time (docs/decisions/0003): when it became ready, and its urgency. The
jobs of one user are put `step` seconds apart, so the thousandth stands where a job of another user
that comes an hour later stands too. With idle workers nothing changes, for the order decides only
among those that wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.kit.db import Tx

SQL = load("penstock.jobs.sql")
MOST_LEAD = 1800.0
"""The last of a long list is served like a job that comes half an hour later, and no later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FairShare:
    step: float
    lead: float = MOST_LEAD

    async def spread(self, tx: Tx, queue: str, username: str, job_ids: Sequence[int]) -> None:
        """In the transaction that adds the jobs."""
        if job_ids and self.step > 0:
            await tx.changed(
                SQL.fair_share,
                queue=queue,
                username=username,
                job_ids=list(job_ids),
                step=self.step,
                lead=self.lead,
            )
