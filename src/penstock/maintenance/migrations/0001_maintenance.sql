-- Tables that are looked after: what is known of them, what was done to them, and by which policies.

CREATE TABLE penstock.maintained_table (
  catalog     text NOT NULL,
  db          text NOT NULL,
  table_name  text NOT NULL,
  enabled     boolean NOT NULL,
  score       integer NOT NULL,
  facts       jsonb NOT NULL,
  health      jsonb NOT NULL,
  error       text,
  seen_at     timestamptz NOT NULL DEFAULT penstock.now(),
  PRIMARY KEY (catalog, db, table_name)
);
COMMENT ON TABLE penstock.maintained_table IS 'What the catalogs said last; a copy, never the truth.';

CREATE TABLE penstock.maintenance_job (
  job_id      bigint PRIMARY KEY,
  catalog     text NOT NULL,
  db          text NOT NULL,
  table_name  text NOT NULL,
  run_id      bigint,
  policy      text,
  snapshot_id bigint,
  created_at  timestamptz NOT NULL DEFAULT penstock.now()
);
COMMENT ON COLUMN penstock.maintenance_job.snapshot_id IS 'The table as it was when the job was asked for.';
CREATE INDEX maintenance_job_table ON penstock.maintenance_job (catalog, db, table_name, job_id);
CREATE INDEX maintenance_job_run ON penstock.maintenance_job (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE penstock.maintenance_action (
  job_id     bigint NOT NULL,
  attempt_id uuid NOT NULL,
  action     text NOT NULL,
  status     text NOT NULL,
  result     jsonb NOT NULL,
  ended_at   timestamptz NOT NULL DEFAULT penstock.now(),
  PRIMARY KEY (job_id, attempt_id, action)
);
COMMENT ON TABLE penstock.maintenance_action IS 'Written as each action ends, under the fence of its attempt.';

CREATE TABLE penstock.maintenance_policy (
  name       text PRIMARY KEY,
  position   integer NOT NULL,
  definition jsonb NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT penstock.now(),
  updated_by text NOT NULL
);

CREATE TABLE penstock.maintenance_run (
  run_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at        timestamptz NOT NULL DEFAULT penstock.now(),
  assessed  integer NOT NULL,
  skipped   jsonb NOT NULL,
  healthy   integer NOT NULL,
  submitted integer NOT NULL
);
COMMENT ON TABLE penstock.maintenance_run IS 'Passes of the planner that looked at tables; how its jobs ended is asked of the jobs.';
