"""What must be true of the kernel's tables at every moment, asked of the tables alone.

Each entry is a sentence and a query for the rows that contradict it. The sentences follow the
promises: one end a job (1), nothing lost (2), one holder a lock (3), gates that fired only when
nobody was left (4), attempts within their number (6). What needs a memory (a cancel that was
acknowledged, a fence that was seen) is checked by whoever has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncpg

INVARIANTS = {
    "a job ends once": """
        SELECT job_id FROM penstock.outcome GROUP BY job_id HAVING count(*) > 1""",
    "a job that is over is not live": """
        SELECT job_id FROM penstock.live JOIN penstock.outcome USING (job_id)""",
    "every job is live or over": """
        SELECT job_id FROM penstock.job j
        WHERE NOT EXISTS (SELECT FROM penstock.live l WHERE l.job_id = j.job_id)
          AND NOT EXISTS (SELECT FROM penstock.outcome o WHERE o.job_id = j.job_id)""",
    "nothing is live or over that was not asked for": """
        SELECT job_id FROM (SELECT job_id FROM penstock.live UNION ALL SELECT job_id FROM
          penstock.outcome
                            UNION ALL SELECT job_id FROM penstock.attempt) x
        WHERE NOT EXISTS (SELECT FROM penstock.job j WHERE j.job_id = x.job_id)""",
    "a fence is issued once and ends once": """
        SELECT min(job_id) FROM (SELECT job_id, attempt_id FROM penstock.live UNION ALL
                                 SELECT job_id, attempt_id FROM penstock.outcome UNION ALL
                                 SELECT job_id, attempt_id FROM penstock.attempt) x
        WHERE attempt_id IS NOT NULL GROUP BY attempt_id HAVING count(*) > 1""",
    "attempts stay within their number": """
        SELECT job_id FROM (SELECT job_id, attempt_no FROM penstock.live UNION ALL
                            SELECT job_id, attempt_no FROM penstock.outcome) x
        JOIN penstock.job USING (job_id) WHERE attempt_no NOT BETWEEN 0 AND max_attempts""",
    "attempts are numbered without gaps": """
        SELECT job_id FROM (SELECT job_id, attempt_no, attempt_id FROM penstock.live UNION ALL
                            SELECT job_id, attempt_no, attempt_id FROM penstock.outcome) x
        WHERE attempt_no <> (attempt_id IS NOT NULL)::int + (
          SELECT count(*) FROM penstock.attempt a
          WHERE a.job_id = x.job_id AND a.how IN ('retried', 'lapsed', 'cancelled'))""",
    "a lock has one holder": """
        SELECT min(job_id) FROM penstock.live WHERE lock_key IS NOT NULL GROUP BY lock_key HAVING
          count(*) > 1""",
    "a live job holds the lock that it asked for": """
        SELECT job_id FROM penstock.live l JOIN penstock.job j USING (job_id)
        WHERE l.lock_key IS DISTINCT FROM j.lock_key OR l.group_id IS DISTINCT FROM j.group_id""",
    "a running job has a lease, the others have none": """
        SELECT job_id FROM penstock.live
        WHERE num_nonnulls(attempt_id, lease_until, worker, claimed_at) <> CASE status WHEN 1 THEN
          4 ELSE 0 END""",
    "who waits for a time has one": """
        SELECT job_id FROM penstock.live WHERE (wake_at IS NOT NULL) <> (status IN (2, 3))""",
    "a gate that fired has no live member": """
        SELECT g.group_id FROM penstock.job_group g JOIN penstock.live l USING (group_id) WHERE
          g.status >= 10""",
    "a group succeeds only if all its members did": """
        SELECT g.group_id FROM penstock.job_group g
        JOIN penstock.job j USING (group_id) JOIN penstock.outcome o USING (job_id)
        WHERE g.status = 10 AND o.status <> 10""",
    "a group that fails says why": """
        SELECT group_id FROM penstock.job_group WHERE (status IN (1, 11)) <> (error IS NOT NULL)""",
    "a unique key has one job": """
        SELECT min(job_id) FROM penstock.job WHERE unique_key IS NOT NULL GROUP BY unique_key
          HAVING count(*) > 1""",
    "a schedule's last job is the one of its last tick": """
        SELECT s.last_job FROM penstock.schedule s
        WHERE s.last_job IS NOT NULL AND NOT EXISTS (SELECT FROM penstock.job j WHERE j.job_id =
          s.last_job)""",
}

_ALL = " UNION ALL ".join(
    f"(SELECT '{sentence.replace(chr(39), chr(39) * 2)}' AS sentence, x.* FROM ({query}) x (id))"
    for sentence, query in INVARIANTS.items()
)


async def broken(connection: asyncpg.Connection[asyncpg.Record]) -> list[tuple[str, int]]:
    """The sentences that are not true, each with a job or group that contradicts it."""
    return [(r["sentence"], r["id"]) for r in await connection.fetch(_ALL)]
