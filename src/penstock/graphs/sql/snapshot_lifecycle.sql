-- A new life counts from now. When it was last changed is left alone: the clean-up counts a failure's age from there.
UPDATE penstock.snapshot
SET ttl = CASE WHEN :set_ttl THEN :ttl::interval ELSE ttl END,
    expires_at = CASE WHEN :set_ttl THEN penstock.now() + :ttl::interval ELSE expires_at END,
    inactivity_timeout = CASE WHEN :set_inactivity THEN :inactivity_timeout::interval ELSE inactivity_timeout END
WHERE snapshot_id = :snapshot_id
RETURNING *
