-- Sealed credentials leave the table that says which sources there are.
CREATE TABLE penstock_secret.data_source_credentials (
  data_source_id bigint PRIMARY KEY REFERENCES penstock.data_source ON DELETE CASCADE,
  credentials    bytea NOT NULL
);
REVOKE ALL ON penstock_secret.data_source_credentials FROM PUBLIC;
COMMENT ON COLUMN penstock_secret.data_source_credentials.credentials IS 'Sealed by the vault and bound to this row; they leave the server only to the attempt that needs them.';
INSERT INTO penstock_secret.data_source_credentials (data_source_id, credentials)
SELECT data_source_id, credentials FROM penstock.data_source WHERE credentials IS NOT NULL;
ALTER TABLE penstock.data_source DROP COLUMN credentials;
