UPDATE penstock.instance
SET name = coalesce(:name, name),
    description = CASE WHEN :set_description::bool THEN :description ELSE description END,
    updated_at = penstock.now()
WHERE instance_id = :instance_id
