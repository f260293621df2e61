-- Whether somebody may read the rows of a snapshot: whoever might make it now. One that names no source is its owner's.
SELECT a.is_admin
       OR CASE WHEN s.data_source_id IS NULL THEN s.owner_username = :username
               ELSE penstock.may_run_mapping(s.mapping_id, s.data_source_id, :username, a.is_admin) END
FROM penstock.snapshot s,
     LATERAL (SELECT coalesce(:is_admin::boolean, penstock.has_admin_role(:username::text)) AS is_admin) a
WHERE s.snapshot_id = :snapshot_id
