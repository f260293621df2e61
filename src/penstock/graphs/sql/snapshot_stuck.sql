-- Snapshots that are being made although nothing of theirs is under way: their gate fired and nobody finalised them.
-- Those of the last seconds are left to the transaction that ends them. Index: snapshot_open, live primary key.
SELECT s.snapshot_id
FROM penstock.snapshot s
WHERE s.status = 'creating'
  AND s.updated_at <= penstock.now() - make_interval(secs => :grace)
  AND EXISTS (SELECT FROM penstock.snapshot_export e WHERE e.snapshot_id = s.snapshot_id)
  AND NOT EXISTS (SELECT FROM penstock.live l WHERE l.job_id = s.publish_job)
  AND NOT EXISTS (
    SELECT FROM penstock.snapshot_export e JOIN penstock.live l ON l.job_id = e.job_id WHERE e.snapshot_id = s.snapshot_id)
ORDER BY s.snapshot_id
LIMIT :limit
