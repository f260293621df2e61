-- The longest unused ones, by upload_used_at; not those that a run reads that is not over.
DELETE FROM penstock.upload WHERE upload_id IN (
  SELECT upload_id FROM penstock.upload u
  WHERE used_at < penstock.now() - make_interval(days => :days)
    AND NOT EXISTS (
      SELECT FROM penstock.run
      WHERE status IN ('staging', 'ready', 'executing')
        AND (inputs->'left'->>'upload' = u.upload_id OR inputs->'right'->>'upload' = u.upload_id)
    )
  ORDER BY used_at LIMIT :limit FOR UPDATE SKIP LOCKED
)
RETURNING key
