-- name: is_admin
-- Whether a user may do what admins may, as the table of users says now.
SELECT penstock.has_admin_role(:username)
