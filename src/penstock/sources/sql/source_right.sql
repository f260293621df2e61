-- Whether somebody may read from a source. :is_admin NULL: as the table of users says.
SELECT penstock.may_use_source(:data_source_id, :username::text,
                               coalesce(:is_admin::boolean, penstock.has_admin_role(:username)))
