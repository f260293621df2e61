-- What people call it. What is NULL stays, but a description can be taken away. When an open or failed one was last
-- changed is left alone: its age counts from there, for those who finalise and those who clean up.
UPDATE penstock.snapshot
SET name = coalesce(:name, name),
    description = CASE WHEN :set_description THEN :description ELSE description END,
    updated_at = CASE WHEN status IN ('pending', 'creating', 'failed') THEN updated_at ELSE penstock.now() END
WHERE snapshot_id = :snapshot_id
RETURNING *
