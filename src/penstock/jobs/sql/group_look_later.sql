-- Has the reaper look at a group after a pause: its gate failed. Index: job_group primary key.
UPDATE penstock.job_group SET look_at = penstock.now() + make_interval(secs => :seconds)
WHERE group_id = :group_id AND status < 10
