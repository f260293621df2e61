-- How long until a loop is due; one that was asked for since its last pass is due now. Index: background_loop primary key.
SELECT CASE WHEN triggered_at > coalesce(last_run, '-infinity') OR next_run IS NULL THEN 0
            ELSE extract(epoch FROM next_run - penstock.now()) END::float8
FROM penstock.background_loop WHERE name = :name
