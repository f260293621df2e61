-- What the words of a query could run that neither PostgreSQL nor an extension brought, and, of the
-- words after a dot, every function: `t.f` runs f when t has no column f. All by name, for the path
-- that an unqualified name is looked up on. `what` is dotted, called, operator, implicit or explicit.
WITH path AS (
  SELECT oid FROM pg_namespace WHERE nspname = ANY (current_schemas(true))
),
own AS (
  SELECT p.oid, p.proname, n.nspname || '.' || p.proname AS full_name, p.pronamespace
  FROM pg_proc AS p
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
  WHERE n.nspname <> 'pg_catalog'
    AND NOT EXISTS (
      SELECT FROM pg_depend AS d
      WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    )
)
SELECT 'dotted', proname::text, proname::text
FROM pg_proc
WHERE proname = ANY (:dotted::text[]) AND pronamespace IN (SELECT oid FROM path)
UNION
SELECT 'dotted', typname::text, typname::text
FROM pg_type
WHERE typname = ANY (:dotted::text[]) AND typtype = 'd' AND typnamespace IN (SELECT oid FROM path)
UNION
SELECT 'called', proname::text, full_name
FROM own
WHERE proname = ANY (:called::text[]) AND pronamespace IN (SELECT oid FROM path)
UNION
SELECT 'operator', o.oprname::text, own.full_name
FROM pg_operator AS o
JOIN own ON own.oid = o.oprcode
WHERE o.oprnamespace IN (SELECT oid FROM path)
UNION
SELECT CASE c.castcontext WHEN 'i' THEN 'implicit' ELSE 'explicit' END, '', own.full_name
FROM pg_cast AS c
JOIN own ON own.oid = c.castfunc
