-- name: session_close
DELETE FROM penstock_secret.browser_session WHERE session_digest = :session_digest

-- name: session_drop
-- Links and sessions that are over, a batch at a time. Index: browser_session_created.
DELETE FROM penstock_secret.browser_session WHERE link_digest IN (
  SELECT link_digest FROM penstock_secret.browser_session
  WHERE coalesce(expires_at, link_expires_at) < penstock.now()
  ORDER BY created_at LIMIT :limit
)

-- name: session_find
SELECT true FROM penstock_secret.browser_session
WHERE session_digest = :session_digest AND expires_at > penstock.now()

-- name: session_link_add
INSERT INTO penstock_secret.browser_session (link_digest, link_expires_at)
VALUES (:link_digest, penstock.now() + :life)
RETURNING link_expires_at

-- name: session_open
-- A link opens one session: whoever comes second finds it opened. Index: the primary key.
UPDATE penstock_secret.browser_session
SET session_digest = :session_digest, opened_at = penstock.now(), expires_at = penstock.now() + :life
WHERE link_digest = :link_digest AND opened_at IS NULL AND link_expires_at > penstock.now()
RETURNING expires_at
