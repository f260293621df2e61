-- How large the live table is.
SELECT pg_relation_size('penstock.live') / current_setting('block_size')::bigint
