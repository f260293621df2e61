DELETE FROM penstock.browser_session WHERE session_digest = :session_digest
