-- A worker says that it is there, and hears whether its session is over because another process registered its name.
-- A name that two live processes share without having registered is told apart by its session. Index: primary keys.
-- Locks: its session, shared, so that a heartbeat on its way does not put back the name of a worker that leaves; then the
-- worker. Registrations and farewells take them in the same order.
WITH own AS MATERIALIZED (
  SELECT superseded_by, ended_at FROM penstock.worker_session WHERE session = :session FOR SHARE
), over AS MATERIALIZED (
  SELECT superseded_by FROM own WHERE ended_at IS NOT NULL
), before AS (
  SELECT session, seen_at FROM penstock.worker WHERE name = :name
), written AS (
  INSERT INTO penstock.worker (name, session, running, slots, queues, version)
  SELECT :name::text, :session::uuid, :running::integer, :slots::integer, :queues::text[], :version::text
  WHERE NOT EXISTS (SELECT FROM over)
  ON CONFLICT (name) DO UPDATE
  SET session = excluded.session, seen_at = penstock.now(), running = excluded.running, slots = excluded.slots,
      queues = excluded.queues, version = excluded.version,
      started_at = CASE WHEN penstock.worker.session = excluded.session THEN penstock.worker.started_at
                        ELSE penstock.now() END
)
SELECT NOT EXISTS (SELECT FROM over) AND coalesce(
         (SELECT session <> :session AND seen_at > penstock.now() - interval '60 seconds' FROM before), false) AS shared,
       EXISTS (SELECT FROM over WHERE superseded_by IS NOT NULL) AS superseded
