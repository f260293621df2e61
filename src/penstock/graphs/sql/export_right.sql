-- Whether the owner of a snapshot may have it exported from this source now.
SELECT s.owner_username,
       penstock.may_run_mapping(s.mapping_id, :data_source_id, s.owner_username,
                                penstock.has_admin_role(s.owner_username)) AS allowed
FROM penstock.snapshot s WHERE s.snapshot_id = :snapshot_id
