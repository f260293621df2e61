-- Key digests and remembered answers leave the schema that an operator may let others read: nobody but the role that
-- runs Penstock has USAGE here, whatever was granted on the tables before.
CREATE SCHEMA penstock_secret;
REVOKE ALL ON SCHEMA penstock_secret FROM PUBLIC;
COMMENT ON SCHEMA penstock_secret IS 'No data source reads from a database that has this schema, and no other role is to be granted anything on it.';
ALTER TABLE penstock.api_key SET SCHEMA penstock_secret;
ALTER TABLE penstock.idempotency SET SCHEMA penstock_secret;
ALTER TABLE penstock.browser_session SET SCHEMA penstock_secret;
REVOKE ALL ON ALL TABLES IN SCHEMA penstock_secret FROM PUBLIC;
