-- A pass has ended. Its own process holds the loop's advisory lock, so nobody else writes this.
INSERT INTO penstock.background_loop (name, last_run, last_status, next_run)
VALUES (:name, penstock.now(), :status, penstock.now() + make_interval(secs => :every))
ON CONFLICT (name) DO UPDATE
SET last_run = excluded.last_run, last_status = excluded.last_status, next_run = excluded.next_run
