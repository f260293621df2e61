-- Newest first. Index: account_newest.
SELECT username, email, display_name, role, is_active, created_at, updated_at, last_login_at, role_changed_at, role_changed_by
FROM penstock.account
WHERE :is_active::boolean IS NULL OR is_active = :is_active
ORDER BY created_at DESC, username DESC
OFFSET :offset LIMIT :limit
