-- How large the job table is.
SELECT pg_relation_size('penstock.job') / current_setting('block_size')::bigint
