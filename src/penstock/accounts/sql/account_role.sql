UPDATE penstock.account SET
  role = :role, role_changed_at = penstock.now(), role_changed_by = :actor, updated_at = penstock.now()
WHERE username = :username
RETURNING username, email, display_name, role, is_active, created_at, updated_at, last_login_at, role_changed_at, role_changed_by
