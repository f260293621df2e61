-- Snapshots, and which job of the kernel exports each of their entities.

CREATE TABLE penstock.snapshot (
  snapshot_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  mapping_id         bigint,
  mapping_version    integer,
  owner_username     text NOT NULL,
  name               text NOT NULL,
  description        text,
  status             text NOT NULL DEFAULT 'pending',
  prefix             text,
  size_bytes         bigint,
  node_counts        jsonb NOT NULL DEFAULT '{}',
  edge_counts        jsonb NOT NULL DEFAULT '{}',
  error_message      text,
  failed_step        text,
  publish_job        bigint,
  created_at         timestamptz NOT NULL DEFAULT penstock.now(),
  updated_at         timestamptz NOT NULL DEFAULT penstock.now(),
  ready_at           timestamptz,
  expires_at         timestamptz,
  ttl                interval,
  inactivity_timeout interval,
  last_used_at       timestamptz,
  CONSTRAINT snapshot_status CHECK (status IN ('pending', 'creating', 'ready', 'failed', 'cancelled'))
);
COMMENT ON COLUMN penstock.snapshot.prefix IS 'Where its files are, below the storage root; null when they were cleaned up.';
COMMENT ON COLUMN penstock.snapshot.publish_job IS 'The job that checks the parts and writes the manifest, once all exports are done.';
CREATE INDEX snapshot_open ON penstock.snapshot (snapshot_id) WHERE status IN ('pending', 'creating');

CREATE TABLE penstock.snapshot_export (
  snapshot_id bigint NOT NULL REFERENCES penstock.snapshot ON DELETE CASCADE,
  position    integer NOT NULL,
  job_type    text NOT NULL,
  entity_name text NOT NULL,
  from_node   text NOT NULL DEFAULT '',
  to_node     text NOT NULL DEFAULT '',
  job_id      bigint NOT NULL UNIQUE,
  PRIMARY KEY (snapshot_id, position),
  UNIQUE (snapshot_id, job_type, entity_name, from_node, to_node),
  CONSTRAINT snapshot_export_type CHECK (job_type IN ('node', 'edge'))
);
COMMENT ON TABLE penstock.snapshot_export IS 'The job that exports each entity of a snapshot; a retry puts a new job in the place of one that failed.';
