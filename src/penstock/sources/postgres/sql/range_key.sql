-- The column by which a partitioned table or a view is best cut: one that an index leads with, in the table itself or,
-- under the same name and type, in a table that the view reads. Any column would cut it right; this one cuts it cheaply.
-- With :key only that one will do.
WITH base AS (
  SELECT :oid::int8::oid AS relid
  UNION
  SELECT d.refobjid
  FROM pg_rewrite AS r
  JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
  WHERE r.ev_class = :oid::int8::oid
)
SELECT
  mine.attname::text,
  format_type(mine.atttypid, NULL),
  n.nspname::text,
  b.relname::text,
  b.reltuples::float8
FROM base
JOIN pg_class AS b ON b.oid = base.relid AND b.relkind IN ('r', 'p', 'm')
JOIN pg_namespace AS n ON n.oid = b.relnamespace
JOIN pg_index AS i ON i.indrelid = b.oid AND i.indisvalid AND i.indpred IS NULL
JOIN pg_attribute AS theirs ON theirs.attrelid = b.oid AND theirs.attnum = i.indkey[0]
JOIN pg_attribute AS mine
  ON mine.attrelid = :oid::int8::oid AND mine.attname = theirs.attname AND mine.atttypid = theirs.atttypid
WHERE mine.atttypid::regtype::text = ANY (
  ARRAY['smallint', 'integer', 'bigint', 'numeric', 'text', 'character varying', 'uuid', 'date',
        'timestamp without time zone', 'timestamp with time zone']
)
AND (:key::text IS NULL OR mine.attname = :key::text)
ORDER BY i.indisprimary DESC, i.indisunique DESC, b.reltuples DESC, mine.attnum
LIMIT 1
