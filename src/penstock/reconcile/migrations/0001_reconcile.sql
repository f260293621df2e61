-- Recipes with their versions, uploaded files, and runs.

CREATE TABLE penstock.recipe (
  recipe_id      text PRIMARY KEY,
  owner_username text NOT NULL,
  version        integer NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT penstock.now(),
  updated_at     timestamptz NOT NULL DEFAULT penstock.now()
);
COMMENT ON TABLE penstock.recipe IS 'Which records belong together; version is the newest one.';

CREATE TABLE penstock.recipe_version (
  recipe_id  text NOT NULL REFERENCES penstock.recipe ON DELETE CASCADE,
  version    integer NOT NULL,
  document   jsonb NOT NULL,
  digest     text NOT NULL,
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT penstock.now(),
  PRIMARY KEY (recipe_id, version)
);
COMMENT ON TABLE penstock.recipe_version IS 'Written once, never changed: a run names the version it was made of.';

CREATE TABLE penstock.upload (
  upload_id      text PRIMARY KEY,
  owner_username text NOT NULL,
  name           text NOT NULL,
  key            text NOT NULL,
  rows           bigint NOT NULL,
  size_bytes     bigint NOT NULL,
  sha256         text NOT NULL,
  columns        jsonb NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT penstock.now()
);

CREATE TABLE penstock.run (
  run_id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  recipe_id      text,
  recipe_version integer,
  recipe         jsonb NOT NULL,
  parameters     jsonb NOT NULL DEFAULT '{}',
  owner_username text NOT NULL,
  status         text NOT NULL DEFAULT 'staging',
  inputs         jsonb NOT NULL DEFAULT '{}',
  staging_group  bigint,
  match_group    bigint,
  match_job      bigint,
  retry_of       bigint,
  callback_url   text,
  result         jsonb,
  error          jsonb,
  created_at     timestamptz NOT NULL DEFAULT penstock.now(),
  updated_at     timestamptz NOT NULL DEFAULT penstock.now(),
  ready_at       timestamptz,
  finished_at    timestamptz,
  deadline       timestamptz NOT NULL,
  CONSTRAINT run_status CHECK (status IN ('staging', 'ready', 'executing', 'completed', 'failed', 'cancelled'))
);
COMMENT ON COLUMN penstock.run.inputs IS 'What each side is read from: where, and after staging its parts, rows and digests.';
CREATE INDEX run_open ON penstock.run (run_id) WHERE status IN ('staging', 'ready', 'executing');
CREATE INDEX run_recipe ON penstock.run (recipe_id, run_id) WHERE recipe_id IS NOT NULL;
