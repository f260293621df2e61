-- The run that a scheduled job asked for, once it did. Index: run_started_by_key.
SELECT run_id FROM penstock.run WHERE started_by = :started_by
