-- A new life counts from now.
UPDATE penstock.mapping
SET ttl = CASE WHEN :set_ttl THEN :ttl::interval ELSE ttl END,
    expires_at = CASE WHEN :set_ttl THEN penstock.now() + :ttl::interval ELSE expires_at END,
    inactivity_timeout = CASE WHEN :set_inactivity THEN :inactivity_timeout::interval ELSE inactivity_timeout END,
    revision = revision + 1,
    updated_at = penstock.now()
WHERE mapping_id = :mapping_id
