"""NATS JetStream as the way in which jobs that became ready are announced (`queue=nats`).

PostgreSQL stays the only truth, and the claim decides. A message carries a job's id and nothing
more; losing any number of them, or all of NATS, costs latency and never a job.

    statement that makes a job ready ── outbox row, same commit
    relay        outbox → stream `stage` or `exec`
    connection   wakes the waiting claimers of every control plane
    deliveries   holds a message unacknowledged until its job is over, so that a scaler sees it
    reannouncer  announces again what a stream has lost
"""
