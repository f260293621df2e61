-- Links and sessions that are over, a batch at a time. Index: browser_session_created.
DELETE FROM penstock_secret.browser_session WHERE link_digest IN (
  SELECT link_digest FROM penstock_secret.browser_session
  WHERE coalesce(expires_at, link_expires_at) < penstock.now()
  ORDER BY created_at LIMIT :limit
)
