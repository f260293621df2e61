-- A new mapping; its first version is added next, in the same transaction.
INSERT INTO penstock.mapping (owner_username, name, description, data_source_id, ttl, inactivity_timeout, expires_at)
VALUES (:owner_username, :name, :description, :data_source_id, :ttl, :inactivity_timeout, penstock.now() + :ttl::interval)
RETURNING mapping_id
