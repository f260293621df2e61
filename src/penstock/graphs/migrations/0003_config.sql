-- What operators set at run time, and how the background loops stand, for every control plane alike.

CREATE TABLE penstock.platform_config (
  name       text PRIMARY KEY,
  value      jsonb NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT penstock.now(),
  updated_by text NOT NULL,
  CONSTRAINT platform_config_object CHECK (jsonb_typeof(value) = 'object')
);
COMMENT ON TABLE penstock.platform_config IS 'Only what was set; defaults are in the program. Read afresh each time, so a change holds everywhere at once.';

CREATE TABLE penstock.background_loop (
  name         text PRIMARY KEY,
  last_run     timestamptz,
  last_status  text,
  next_run     timestamptz,
  triggered_at timestamptz,
  triggered_by text,
  reason       text
);
COMMENT ON TABLE penstock.background_loop IS 'The last pass of each loop, whichever control plane made it, and who asked for one by hand.';

CREATE TABLE penstock.favourite (
  username    text NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT penstock.now(),
  mapping_id  bigint REFERENCES penstock.mapping ON DELETE CASCADE,
  snapshot_id bigint REFERENCES penstock.snapshot ON DELETE CASCADE,
  instance_id bigint,
  UNIQUE (username, mapping_id),
  UNIQUE (username, snapshot_id),
  UNIQUE (username, instance_id),
  CONSTRAINT favourite_of_one CHECK (num_nonnulls(mapping_id, snapshot_id, instance_id) = 1)
);
COMMENT ON TABLE penstock.favourite IS 'What somebody keeps at hand; it goes with the thing itself, whoever deletes that.';
CREATE INDEX favourite_mapping ON penstock.favourite (mapping_id) WHERE mapping_id IS NOT NULL;
CREATE INDEX favourite_snapshot ON penstock.favourite (snapshot_id) WHERE snapshot_id IS NOT NULL;
CREATE INDEX favourite_instance ON penstock.favourite (instance_id) WHERE instance_id IS NOT NULL;
