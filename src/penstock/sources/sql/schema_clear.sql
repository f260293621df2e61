DELETE FROM penstock.schema_column WHERE data_source_id = :data_source_id
