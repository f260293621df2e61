-- name: source_add
INSERT INTO penstock.data_source (name, type, owner, config) VALUES (:name, :type, :owner, :config)
RETURNING data_source_id

-- name: source_by_name
SELECT data_source_id FROM penstock.data_source WHERE name = :name

-- name: source_count
SELECT count(*) FROM penstock.data_source WHERE :type::text IS NULL OR type = :type

-- name: source_default
SELECT data_source_id FROM penstock.data_source WHERE is_default

-- name: source_default_turn
-- One change of the default at a time; two that meet would both be the second.
SELECT pg_advisory_xact_lock(hashtextextended('penstock.data_source.default', 0))

-- name: source_drop
DELETE FROM penstock.data_source WHERE data_source_id = :data_source_id

-- name: source_get
SELECT data_source_id, name, type, owner, is_default, config, credentials, created_at, updated_at, tested_at, test_ok, test_says
FROM penstock.data_source LEFT JOIN penstock_secret.data_source_credentials USING (data_source_id)
WHERE data_source_id = :data_source_id

-- name: source_list
SELECT data_source_id, name, type, owner, is_default, config, credentials, created_at, updated_at, tested_at, test_ok, test_says
FROM penstock.data_source LEFT JOIN penstock_secret.data_source_credentials USING (data_source_id)
WHERE :type::text IS NULL OR type = :type
ORDER BY data_source_id DESC
OFFSET :offset LIMIT :limit

-- name: source_make_default
UPDATE penstock.data_source SET is_default = true WHERE data_source_id = :data_source_id

-- name: source_reseal
-- The same secret under another key: to everybody else nothing has changed.
UPDATE penstock_secret.data_source_credentials SET credentials = :credentials WHERE data_source_id = :data_source_id

-- name: source_right
-- Whether somebody may read from a source. :is_admin NULL: as the table of users says.
SELECT penstock.may_use_source(:data_source_id, :username::text,
                               coalesce(:is_admin::boolean, penstock.has_admin_role(:username)))

-- name: source_rights
-- Those of the sources that somebody may read from.
SELECT s.data_source_id FROM penstock.data_source s
WHERE s.data_source_id = ANY(:data_source_ids::bigint[])
  AND penstock.may_use_source(s.data_source_id, :username::text,
                              coalesce(:is_admin::boolean, penstock.has_admin_role(:username)))

-- name: source_seal
-- The credentials are bound to the row's id, so they are sealed once the id is known. NULL takes them away.
WITH changed AS (
  UPDATE penstock.data_source SET updated_at = now() WHERE data_source_id = :data_source_id
), dropped AS (
  DELETE FROM penstock_secret.data_source_credentials
  WHERE data_source_id = :data_source_id AND :credentials::bytea IS NULL
)
INSERT INTO penstock_secret.data_source_credentials (data_source_id, credentials)
SELECT :data_source_id, :credentials::bytea WHERE :credentials::bytea IS NOT NULL
ON CONFLICT (data_source_id) DO UPDATE SET credentials = EXCLUDED.credentials

-- name: source_sealed
-- Every sealed secret, for a change of keys; locked until they are sealed anew.
SELECT data_source_id, credentials FROM penstock_secret.data_source_credentials ORDER BY data_source_id FOR UPDATE

-- name: source_tested
UPDATE penstock.data_source SET tested_at = now(), test_ok = :ok, test_says = :says WHERE data_source_id = :data_source_id

-- name: source_undefault
UPDATE penstock.data_source SET is_default = false WHERE is_default

-- name: source_update
UPDATE penstock.data_source
SET name = coalesce(:name, name), config = coalesce(:config::jsonb, config), updated_at = now(),
    tested_at = NULL, test_ok = NULL, test_says = NULL
WHERE data_source_id = :data_source_id

-- name: source_usable
-- All sources that somebody may read from.
SELECT s.data_source_id FROM penstock.data_source s
WHERE penstock.may_use_source(s.data_source_id, :username::text, :is_admin)
