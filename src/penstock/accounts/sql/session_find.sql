SELECT true FROM penstock_secret.browser_session
WHERE session_digest = :session_digest AND expires_at > penstock.now()
