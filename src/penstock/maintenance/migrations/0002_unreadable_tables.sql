-- A table that cannot be read has no score, and whether its owner opted out is not known: null,
-- which is neither 0 nor no.
ALTER TABLE penstock.maintained_table
  ALTER COLUMN score DROP NOT NULL,
  ALTER COLUMN enabled DROP NOT NULL;
UPDATE penstock.maintained_table SET score = NULL, enabled = NULL WHERE error IS NOT NULL;
COMMENT ON COLUMN penstock.maintained_table.error IS
  'Why the table could not be read; then it has neither score nor facts.';
