-- Which table a job is about; written in the transaction that enqueues it.
INSERT INTO penstock.maintenance_job (job_id, catalog, db, table_name, run_id, policy, snapshot_id)
VALUES (:job_id, :catalog, :db, :table_name, :run_id, :policy, :snapshot_id)
