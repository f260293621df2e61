-- The run's row, before any work of it is queued.
INSERT INTO penstock.run (recipe_id, recipe_version, recipe, parameters, owner_username, status, inputs, callback_url, retry_of, deadline)
VALUES (:recipe_id, :recipe_version, :recipe, :parameters, :owner_username, :status, :inputs, :callback_url, :retry_of, penstock.now() + :timeout::interval)
RETURNING run_id
