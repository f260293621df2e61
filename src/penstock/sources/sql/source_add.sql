INSERT INTO penstock.data_source (name, type, owner, config) VALUES (:name, :type, :owner, :config)
RETURNING data_source_id
