-- Partitions whose every row is older than the retention. Their names carry their month.
SELECT c.relname AS name
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'penstock.outcome'::regclass AND c.relname ~ '^outcome_[0-9]{6}$'
  AND to_date(substr(c.relname, 9), 'YYYYMM') + interval '1 month' < penstock.now() - make_interval(days => :days)
