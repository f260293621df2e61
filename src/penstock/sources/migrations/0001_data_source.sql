-- Configured sources, and what their catalogues said last.

CREATE TABLE penstock.data_source (
  data_source_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name           text NOT NULL UNIQUE,
  type           text NOT NULL,
  owner          text NOT NULL,
  is_default     boolean NOT NULL DEFAULT false,
  config         jsonb NOT NULL,
  credentials    bytea,
  created_at     timestamptz NOT NULL DEFAULT now(),
  updated_at     timestamptz NOT NULL DEFAULT now(),
  tested_at      timestamptz,
  test_ok        boolean,
  test_says      text
);
COMMENT ON COLUMN penstock.data_source.credentials IS 'Sealed by the vault and bound to this row; never leaves the server but to the attempt that needs it.';
CREATE UNIQUE INDEX data_source_default ON penstock.data_source (is_default) WHERE is_default;

CREATE TABLE penstock.schema_column (
  data_source_id bigint NOT NULL REFERENCES penstock.data_source ON DELETE CASCADE,
  catalog_name   text NOT NULL,
  schema_name    text NOT NULL,
  table_name     text NOT NULL,
  table_type     text NOT NULL,
  column_name    text NOT NULL,
  position       integer NOT NULL,
  data_type      text NOT NULL,
  nullable       boolean NOT NULL,
  default_value  text,
  cached_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (data_source_id, catalog_name, schema_name, table_name, position)
);
COMMENT ON TABLE penstock.schema_column IS 'The schema browser''s cache: one row a column, replaced source by source.';
CREATE INDEX schema_column_table ON penstock.schema_column (lower(table_name) text_pattern_ops);
CREATE INDEX schema_column_column ON penstock.schema_column (lower(column_name) text_pattern_ops);
