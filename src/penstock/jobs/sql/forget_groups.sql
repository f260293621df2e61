DELETE FROM penstock.job_group g
WHERE g.status >= 10 AND g.closed_at < penstock.now() - make_interval(days => :days)
  AND NOT EXISTS (SELECT FROM penstock.job j WHERE j.group_id = g.group_id)
