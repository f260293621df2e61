-- Lists of parked jobs read an index of their own: among a million that wait, they were looked for one by one.

CREATE INDEX live_parked ON penstock.live (job_id) WHERE status = 2;
