-- Snapshots that failed long ago and still have files. Reads all snapshots, once a day.
SELECT snapshot_id FROM penstock.snapshot
WHERE status = 'failed' AND prefix IS NOT NULL AND updated_at <= penstock.now() - :kept::interval
ORDER BY snapshot_id LIMIT :limit
