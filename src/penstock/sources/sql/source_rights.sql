-- Those of the sources that somebody may read from.
SELECT s.data_source_id FROM penstock.data_source s
WHERE s.data_source_id = ANY(:data_source_ids::bigint[])
  AND penstock.may_use_source(s.data_source_id, :username::text,
                              coalesce(:is_admin::boolean, penstock.has_admin_role(:username)))
