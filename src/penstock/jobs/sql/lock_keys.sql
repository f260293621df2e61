-- Those who add jobs with the same lock key come one after the other, before they lock anything else: between the look
-- for a holder and the insert no other holder can appear, so the insert never waits. A bounded number of locks however
-- many keys there are; two keys that share one wait a moment longer than they need to.
SELECT pg_advisory_xact_lock(hashtext('penstock.lock_key'), bucket)
FROM (SELECT DISTINCT hashtext(key) & 1023 AS bucket FROM unnest(:lock_keys::text[]) AS t (key) ORDER BY bucket) AS ordered
