-- name: account_add
INSERT INTO penstock.account (username, email, display_name, role)
VALUES (:username, :email, :display_name, :role)
RETURNING username, email, display_name, role, is_active, created_at, updated_at, last_login_at, role_changed_at, role_changed_by

-- name: account_change
UPDATE penstock.account SET
  email = coalesce(:email, email),
  display_name = coalesce(:display_name, display_name),
  is_active = coalesce(:is_active, is_active),
  updated_at = penstock.now()
WHERE username = :username
RETURNING username, email, display_name, role, is_active, created_at, updated_at, last_login_at, role_changed_at, role_changed_by

-- name: account_count
SELECT count(*) FROM penstock.account WHERE :is_active::boolean IS NULL OR is_active = :is_active

-- name: account_get
-- Index: account_name.
SELECT username, email, display_name, role, is_active, created_at, updated_at, last_login_at, role_changed_at, role_changed_by
FROM penstock.account
WHERE lower(username) = lower(:username)

-- name: account_list
-- Newest first. Index: account_newest.
SELECT username, email, display_name, role, is_active, created_at, updated_at, last_login_at, role_changed_at, role_changed_by
FROM penstock.account
WHERE :is_active::boolean IS NULL OR is_active = :is_active
ORDER BY created_at DESC, username DESC
OFFSET :offset LIMIT :limit

-- name: account_lock
-- The row a change begins from, held until it is written. Index: account_name.
SELECT username, email, display_name, role, is_active, created_at, updated_at, last_login_at, role_changed_at, role_changed_by
FROM penstock.account
WHERE lower(username) = lower(:username)
FOR UPDATE

-- name: account_role
UPDATE penstock.account SET
  role = :role, role_changed_at = penstock.now(), role_changed_by = :actor, updated_at = penstock.now()
WHERE username = :username
RETURNING username, email, display_name, role, is_active, created_at, updated_at, last_login_at, role_changed_at, role_changed_by

-- name: account_seen
-- At most one write a minute and user.
UPDATE penstock.account SET last_login_at = penstock.now()
WHERE username = :username
  AND (last_login_at IS NULL OR last_login_at < penstock.now() - interval '1 minute')

-- name: bootstrap_turn
-- One at a time: whoever waits here sees the user that the one before has made.
LOCK TABLE penstock.account IN SHARE ROW EXCLUSIVE MODE
