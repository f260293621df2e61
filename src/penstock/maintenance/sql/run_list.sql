-- Passes, newest first, with how their jobs stand. Index: maintenance_job_run.
SELECT r.*, count(*) OVER () AS total,
  (SELECT count(*) FROM penstock.maintenance_job m JOIN penstock.outcome o USING (job_id) WHERE m.run_id = r.run_id AND o.status = 10) AS completed,
  (SELECT count(*) FROM penstock.maintenance_job m JOIN penstock.outcome o USING (job_id) WHERE m.run_id = r.run_id AND o.status > 10) AS failed
FROM penstock.maintenance_run r ORDER BY r.run_id DESC LIMIT :limit OFFSET :offset
