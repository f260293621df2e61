-- The row a change begins from, held until it is written. Index: account_name.
SELECT username, email, display_name, role, is_active, created_at, updated_at, last_login_at, role_changed_at, role_changed_by
FROM penstock.account
WHERE lower(username) = lower(:username)
FOR UPDATE
