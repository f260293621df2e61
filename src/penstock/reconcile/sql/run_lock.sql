-- The run's stored status, locked. Taken after live rows and groups, as everybody takes them.
SELECT run_id, status, inputs, recipe, recipe_id, recipe_version, parameters, owner_username, staging_group, match_group, match_job, result,
       extract(epoch FROM deadline - penstock.now())::float8 AS seconds_left, callback_url
FROM penstock.run WHERE run_id = :run_id FOR UPDATE
