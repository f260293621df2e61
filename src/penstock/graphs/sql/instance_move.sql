-- The next step of an instance that the caller has locked and whose step it has checked.
-- Invariant: a cause of failure that is there stays; a new launch begins without the last one's.
UPDATE penstock.instance
SET status = :status,
    updated_at = penstock.now(),
    status_at = penstock.now(),
    launch = launch + :launching::bool::int,
    progress = CASE WHEN :launching THEN NULL ELSE progress END,
    started_at = CASE WHEN :status = 'running' THEN penstock.now() ELSE started_at END,
    last_activity_at = CASE WHEN :status = 'running' THEN penstock.now() ELSE last_activity_at END,
    error_code = CASE WHEN :launching THEN NULL ELSE coalesce(error_code, :error_code) END,
    error_message = CASE WHEN :launching THEN NULL WHEN error_code IS NULL THEN :error_message ELSE error_message END,
    failed_phase = CASE WHEN :launching THEN NULL WHEN error_code IS NULL THEN :failed_phase ELSE failed_phase END,
    stack_trace = CASE WHEN :launching THEN NULL WHEN error_code IS NULL THEN :stack_trace ELSE stack_trace END,
    memory_gb = coalesce(:memory_gb, memory_gb),
    node_count = coalesce(:node_count, node_count),
    edge_count = coalesce(:edge_count, edge_count),
    force_stop = force_stop OR :force_stop
WHERE instance_id = :instance_id
