-- One relation, by its name as a query writes it; no row when there is none. Sizes are read, never counted:
-- the rows are those of the statistics, grown as the table has grown since; -1 when there are none.
SELECT
  c.oid::int8,
  c.relkind::text,
  COALESCE(a.amname = 'heap', false) AND current_setting('server_version_num')::int >= 140000,
  c.relrowsecurity,
  CASE WHEN c.relpages > 0 THEN greatest(c.reltuples, 0)::float8 / c.relpages * pg_relation_size(c.oid) / current_setting('block_size')::int8 ELSE -1 END,
  pg_relation_size(c.oid) / current_setting('block_size')::int8,
  current_setting('block_size')::int8
FROM pg_class AS c
LEFT JOIN pg_am AS a ON a.oid = c.relam
WHERE c.oid = to_regclass(:name::text)
