INSERT INTO penstock_secret.browser_session (link_digest, link_expires_at)
VALUES (:link_digest, penstock.now() + :life)
RETURNING link_expires_at
