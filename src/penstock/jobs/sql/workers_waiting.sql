-- Notes that the workers whose long polls wait here are there, in place of a heartbeat of each, and returns the sessions
-- among them that are over: another process registered their name, or they said farewell.
-- A waiting poll is no proof that its process lives (its machine may be gone), so nothing is noted for a session that is
-- over; its process must beat. Index: primary keys.
-- Locks: the workers, SKIP LOCKED: whoever holds one is writing that it is there, and nobody waits in a circle.
WITH waiting AS MATERIALIZED (
  SELECT * FROM unnest(:names::text[], :sessions::uuid[]) AS t (name, session)
), present AS MATERIALIZED (
  SELECT w.name FROM waiting t JOIN penstock.worker w ON w.name = t.name
  WHERE w.session = t.session
  FOR NO KEY UPDATE OF w SKIP LOCKED
), noted AS (
  UPDATE penstock.worker w SET seen_at = penstock.now() FROM present p WHERE w.name = p.name
)
SELECT s.session
FROM waiting t JOIN penstock.worker_session s ON s.session = t.session
WHERE s.ended_at IS NOT NULL
