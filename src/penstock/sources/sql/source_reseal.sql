-- The same secret under another key: to everybody else nothing has changed.
UPDATE penstock.data_source SET credentials = :credentials WHERE data_source_id = :data_source_id
