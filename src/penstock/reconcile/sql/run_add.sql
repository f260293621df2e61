-- The run's row, before any work of it is queued.
INSERT INTO penstock.run (recipe_id, recipe_version, recipe, parameters, owner_username, status, inputs, callback_url, retry_of, started_by, deadline)
VALUES (:recipe_id, :recipe_version, :recipe, :parameters, :owner_username, :status, :inputs, :callback_url, :retry_of, :started_by, penstock.now() + :timeout::interval)
RETURNING run_id
