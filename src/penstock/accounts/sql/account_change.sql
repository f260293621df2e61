UPDATE penstock.account SET
  email = coalesce(:email, email),
  display_name = coalesce(:display_name, display_name),
  is_active = coalesce(:is_active, is_active),
  updated_at = penstock.now()
WHERE username = :username
RETURNING username, email, display_name, role, is_active, created_at, updated_at, last_login_at, role_changed_at, role_changed_by
