-- The jobs that hold these unique keys. Index: job_unique_key.
SELECT job_id, unique_key FROM penstock.job WHERE unique_key = ANY (:unique_keys)
