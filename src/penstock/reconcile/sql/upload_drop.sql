-- Not while a run that is not over reads it; run_open finds those.
DELETE FROM penstock.upload u WHERE upload_id = :upload_id
  AND NOT EXISTS (
    SELECT FROM penstock.run
    WHERE status IN ('staging', 'ready', 'executing')
      AND (inputs->'left'->>'upload' = u.upload_id OR inputs->'right'->>'upload' = u.upload_id)
  )
RETURNING key
