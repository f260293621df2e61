-- A link opens one session: whoever comes second finds it opened. Index: the primary key.
UPDATE penstock_secret.browser_session
SET session_digest = :session_digest, opened_at = penstock.now(), expires_at = penstock.now() + :life
WHERE link_digest = :link_digest AND opened_at IS NULL AND link_expires_at > penstock.now()
RETURNING expires_at
