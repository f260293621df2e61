-- How many jobs a pass asked for; known only after it.
UPDATE penstock.maintenance_run SET submitted = :submitted, skipped = :skipped::jsonb WHERE run_id = :run_id
