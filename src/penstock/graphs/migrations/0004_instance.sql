-- Instances: graph servers that answer for one snapshot, and what happened to each.

CREATE TABLE penstock.instance (
  instance_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  snapshot_id        bigint REFERENCES penstock.snapshot ON DELETE SET NULL,
  mapping_id         bigint,
  mapping_version    integer,
  owner_username     text NOT NULL,
  wrapper_type       text NOT NULL,
  name               text NOT NULL,
  description        text,
  status             text NOT NULL,
  url_slug           text NOT NULL UNIQUE,
  place              text NOT NULL,
  launch             integer NOT NULL DEFAULT 0,
  placed             boolean NOT NULL DEFAULT false,
  launched_at        timestamptz,
  force_stop         boolean NOT NULL DEFAULT false,
  progress           jsonb,
  error_code         text,
  error_message      text,
  failed_phase       text,
  stack_trace        text,
  created_at         timestamptz NOT NULL DEFAULT penstock.now(),
  updated_at         timestamptz NOT NULL DEFAULT penstock.now(),
  status_at          timestamptz NOT NULL DEFAULT penstock.now(),
  started_at         timestamptz,
  last_activity_at   timestamptz,
  expires_at         timestamptz,
  ttl                interval,
  inactivity_timeout interval,
  memory_usage_bytes bigint,
  disk_usage_bytes   bigint,
  query_count        bigint NOT NULL DEFAULT 0,
  cpu_cores          integer NOT NULL,
  memory_gb          integer NOT NULL,
  node_count         bigint,
  edge_count         bigint,
  CONSTRAINT instance_status CHECK (status IN (
    'waiting_for_snapshot', 'starting', 'running', 'stopping', 'failed', 'suspended', 'resuming')),
  CONSTRAINT instance_cpu CHECK (cpu_cores BETWEEN 1 AND 8),
  CONSTRAINT instance_memory CHECK (memory_gb BETWEEN 2 AND 32)
);
COMMENT ON COLUMN penstock.instance.snapshot_id IS 'What it answers for; null once that was deleted, which only failed and stopping ones allow.';
COMMENT ON COLUMN penstock.instance.place IS 'The launcher that runs it; nobody else judges whether it runs.';
COMMENT ON COLUMN penstock.instance.launch IS 'Counts its runs: a resumed one is another process than before.';
COMMENT ON COLUMN penstock.instance.placed IS 'Whether a process of this launch may exist: set before it is started, cleared after it is gone.';
COMMENT ON COLUMN penstock.instance.status_at IS 'Since when it is what it is.';
COMMENT ON COLUMN penstock.instance.last_activity_at IS 'The last query or algorithm, or when it became running: its inactivity counts from there.';
CREATE INDEX instance_snapshot ON penstock.instance (snapshot_id, status);
CREATE INDEX instance_created ON penstock.instance (created_at, instance_id);
CREATE INDEX instance_owner ON penstock.instance (owner_username, created_at, instance_id);
CREATE INDEX instance_mapping ON penstock.instance (mapping_id, mapping_version);
CREATE INDEX instance_errand ON penstock.instance (place, instance_id)
  WHERE placed OR status IN ('starting', 'resuming', 'stopping');

CREATE TABLE penstock.instance_event (
  event_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  instance_id bigint NOT NULL REFERENCES penstock.instance ON DELETE CASCADE,
  event_type  text NOT NULL,
  actor       text,
  details     jsonb NOT NULL DEFAULT '{}',
  created_at  timestamptz NOT NULL DEFAULT penstock.now()
);
CREATE INDEX instance_event_instance ON penstock.instance_event (instance_id, event_id);

ALTER TABLE penstock.favourite ADD CONSTRAINT favourite_of_instance
  FOREIGN KEY (instance_id) REFERENCES penstock.instance ON DELETE CASCADE;
