SELECT job_id, kind, payload, timeout_s, created_by, trace FROM penstock.job WHERE job_id = ANY (:job_ids::bigint[])
