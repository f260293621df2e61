SELECT r.run_id, r.recipe_id, r.recipe_version, r.recipe, r.parameters, r.owner_username,
       CASE WHEN r.status = 'ready' AND l.attempt_id IS NOT NULL THEN 'executing' ELSE r.status END AS status,
       r.inputs, r.staging_group, r.match_group, r.match_job, r.retry_of, r.callback_url, r.result, r.error,
       r.created_at, r.updated_at, r.ready_at, r.finished_at, r.deadline
FROM penstock.run r LEFT JOIN penstock.live l ON l.job_id = r.match_job
WHERE (:recipe_id::text IS NULL OR r.recipe_id = :recipe_id) AND (:owner_username::text IS NULL OR r.owner_username = :owner_username)
ORDER BY r.run_id DESC LIMIT :limit OFFSET :offset
