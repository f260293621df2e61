-- How many changes by hand there are, counted no further than to a bound.
SELECT count(*) FROM (
  SELECT FROM penstock.audit WHERE :subject::text IS NULL OR subject = :subject LIMIT :most
) AS counted
