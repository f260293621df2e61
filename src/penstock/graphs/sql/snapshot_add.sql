-- A new snapshot; its prefix holds its own number, so it is set next, in the same transaction.
INSERT INTO penstock.snapshot (mapping_id, mapping_version, data_source_id, owner_username, name, description, ttl, inactivity_timeout, expires_at)
VALUES (:mapping_id, :mapping_version, :data_source_id, :owner_username, :name, :description, :ttl, :inactivity_timeout,
        penstock.now() + :ttl::interval)
RETURNING snapshot_id
