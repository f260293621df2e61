SELECT status, count(*) AS count FROM penstock.snapshot GROUP BY status
