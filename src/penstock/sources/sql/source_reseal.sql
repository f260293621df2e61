-- The same secret under another key: to everybody else nothing has changed.
UPDATE penstock_secret.data_source_credentials SET credentials = :credentials WHERE data_source_id = :data_source_id
