-- A ttl counts from now, and never shortens what was promised before; null ends the ending.
UPDATE penstock.instance
SET ttl = CASE WHEN :set_ttl::bool THEN :ttl::interval ELSE ttl END,
    expires_at = CASE
      WHEN NOT :set_ttl::bool THEN expires_at
      WHEN :ttl::interval IS NULL THEN NULL
      ELSE greatest(expires_at, penstock.now() + :ttl::interval) END,
    inactivity_timeout = CASE WHEN :set_inactivity::bool THEN :inactivity_timeout::interval ELSE inactivity_timeout END,
    updated_at = penstock.now()
WHERE instance_id = :instance_id
