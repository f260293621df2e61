-- The credentials are bound to the row's id, so they are sealed once the id is known.
UPDATE penstock.data_source SET credentials = :credentials, updated_at = now() WHERE data_source_id = :data_source_id
