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
