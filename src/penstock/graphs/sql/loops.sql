-- name: loop_due
-- How long until a loop is due; one that was asked for since its last pass is due now. Index: background_loop primary key.
SELECT CASE WHEN triggered_at > coalesce(last_run, '-infinity') OR next_run IS NULL THEN 0
            ELSE extract(epoch FROM next_run - penstock.now()) END::float8
FROM penstock.background_loop WHERE name = :name

-- name: loop_list
SELECT name, last_run, last_status, next_run FROM penstock.background_loop

-- name: loop_ran
-- A pass has ended. Its own process holds the loop's advisory lock, so nobody else writes this.
INSERT INTO penstock.background_loop (name, last_run, last_status, next_run)
VALUES (:name, penstock.now(), :status, penstock.now() + make_interval(secs => :every))
ON CONFLICT (name) DO UPDATE
SET last_run = excluded.last_run, last_status = excluded.last_status, next_run = excluded.next_run

-- name: loop_trigger
-- Somebody asks for a pass now. Nothing is returned when somebody did so less than :pause seconds ago, at whichever
-- control plane: the row is locked, so of two at once the second sees the first.
INSERT INTO penstock.background_loop AS l (name, triggered_at, triggered_by, reason)
VALUES (:name, penstock.now(), :actor, :reason)
ON CONFLICT (name) DO UPDATE
SET triggered_at = excluded.triggered_at, triggered_by = excluded.triggered_by, reason = excluded.reason
WHERE l.triggered_at IS NULL OR l.triggered_at <= penstock.now() - make_interval(secs => :pause)
RETURNING l.triggered_at

-- name: loop_triggered
SELECT extract(epoch FROM penstock.now() - triggered_at)::float8 AS ago, triggered_by FROM penstock.background_loop WHERE name = :name
