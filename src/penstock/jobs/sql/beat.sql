-- A worker says that it is there. A name that two live processes share is told apart by its session.
WITH before AS (
  SELECT session, seen_at FROM penstock.worker WHERE name = :name
), written AS (
  INSERT INTO penstock.worker (name, session, running, slots, queues, version)
  VALUES (:name, :session, :running, :slots, :queues, :version)
  ON CONFLICT (name) DO UPDATE
  SET session = excluded.session, seen_at = penstock.now(), running = excluded.running, slots = excluded.slots,
      queues = excluded.queues, version = excluded.version,
      started_at = CASE WHEN penstock.worker.session = excluded.session THEN penstock.worker.started_at
                        ELSE penstock.now() END
)
SELECT coalesce((SELECT session <> :session AND seen_at > penstock.now() - interval '60 seconds' FROM before), false)
