UPDATE penstock.data_source SET is_default = true WHERE data_source_id = :data_source_id
