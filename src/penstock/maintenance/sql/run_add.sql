-- A pass of the planner.
INSERT INTO penstock.maintenance_run (assessed, skipped, healthy, submitted)
VALUES (:assessed, :skipped::jsonb, :healthy, :submitted) RETURNING run_id
