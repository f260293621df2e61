INSERT INTO penstock.account (username, email, display_name, role)
VALUES (:username, :email, :display_name, :role)
RETURNING username, email, display_name, role, is_active, created_at, updated_at, last_login_at, role_changed_at, role_changed_by
