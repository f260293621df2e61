-- Everything of a mapping that is not in its versions. Invariant: the caller has its row locked.
UPDATE penstock.mapping
SET name = :name,
    description = :description,
    data_source_id = :data_source_id,
    current_version = :current_version,
    revision = revision + 1,
    updated_at = penstock.now(),
    last_used_at = penstock.now()
WHERE mapping_id = :mapping_id
