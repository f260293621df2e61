-- New jobs in the place of those that failed.
UPDATE penstock.snapshot_export e SET job_id = t.new_id
FROM unnest(:old_ids::bigint[], :new_ids::bigint[]) AS t (old_id, new_id)
WHERE e.snapshot_id = :snapshot_id AND e.job_id = t.old_id
