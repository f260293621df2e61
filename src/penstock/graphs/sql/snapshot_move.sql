-- The next step of a snapshot that the caller has locked and whose step it has checked. What is NULL stays as it is,
-- but for an old failure, which ends with the step.
UPDATE penstock.snapshot
SET status = :status,
    updated_at = penstock.now(),
    ready_at = CASE WHEN :status = 'ready' THEN penstock.now() ELSE ready_at END,
    size_bytes = coalesce(:size_bytes, size_bytes),
    node_counts = coalesce(:node_counts::jsonb, node_counts),
    edge_counts = coalesce(:edge_counts::jsonb, edge_counts),
    error_message = :error_message,
    failed_step = :failed_step,
    publish_job = :publish_job
WHERE snapshot_id = :snapshot_id
RETURNING *
