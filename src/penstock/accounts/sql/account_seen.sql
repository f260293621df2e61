-- At most one write a minute and user.
UPDATE penstock.account SET last_login_at = penstock.now()
WHERE username = :username
  AND (last_login_at IS NULL OR last_login_at < penstock.now() - interval '1 minute')
