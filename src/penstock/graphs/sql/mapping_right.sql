-- Whether somebody may run a mapping on a source. :is_admin NULL: as the table of users says.
SELECT penstock.may_run_mapping(:mapping_id, :data_source_id, :username::text,
                                coalesce(:is_admin::boolean, penstock.has_admin_role(:username)))
