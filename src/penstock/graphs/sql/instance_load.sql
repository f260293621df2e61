-- What counts against the limits: everything that has a process, will have one, or has one still.
SELECT count(*) FILTER (WHERE owner_username = :owner) AS user_count,
       count(*) AS cluster_count,
       coalesce(sum(memory_gb) FILTER (WHERE owner_username = :owner), 0) AS user_memory,
       coalesce(sum(memory_gb), 0) AS cluster_memory
FROM penstock.instance
WHERE (placed OR status IN ('waiting_for_snapshot', 'starting', 'running', 'resuming', 'stopping'))
  AND instance_id IS DISTINCT FROM :except_id::bigint
