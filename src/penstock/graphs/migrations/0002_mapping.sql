-- Mappings and their versions, and what ties a snapshot to one of them.

CREATE TABLE penstock.mapping (
  mapping_id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner_username     text NOT NULL,
  name               text NOT NULL,
  description        text,
  data_source_id     bigint REFERENCES penstock.data_source ON DELETE RESTRICT,
  current_version    integer NOT NULL DEFAULT 1,
  revision           bigint NOT NULL DEFAULT 1,
  created_at         timestamptz NOT NULL DEFAULT penstock.now(),
  updated_at         timestamptz NOT NULL DEFAULT penstock.now(),
  ttl                interval,
  inactivity_timeout interval,
  expires_at         timestamptz,
  last_used_at       timestamptz NOT NULL DEFAULT penstock.now()
);
COMMENT ON COLUMN penstock.mapping.revision IS 'Counts every change, of the definitions or of anything else: two writers never take each other for themselves.';
COMMENT ON COLUMN penstock.mapping.last_used_at IS 'When it was made, changed, or a snapshot was made of it: its inactivity counts from there.';
CREATE INDEX mapping_created ON penstock.mapping (created_at, mapping_id);
CREATE INDEX mapping_owner ON penstock.mapping (owner_username, created_at, mapping_id);
CREATE INDEX mapping_source ON penstock.mapping (data_source_id);

CREATE TABLE penstock.mapping_version (
  mapping_id         bigint NOT NULL REFERENCES penstock.mapping ON DELETE CASCADE,
  version            integer NOT NULL,
  node_definitions   jsonb NOT NULL,
  edge_definitions   jsonb NOT NULL,
  node_count         integer NOT NULL,
  edge_type_count    integer NOT NULL,
  change_description text,
  created_at         timestamptz NOT NULL DEFAULT penstock.now(),
  created_by         text NOT NULL,
  PRIMARY KEY (mapping_id, version)
);
COMMENT ON TABLE penstock.mapping_version IS 'Append only: a version is never changed, and goes only with its mapping.';

CREATE FUNCTION penstock.mapping_version_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND NOT EXISTS (SELECT FROM penstock.mapping m WHERE m.mapping_id = OLD.mapping_id) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'Version % of mapping % is there for good.', OLD.version, OLD.mapping_id USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER mapping_version_kept BEFORE UPDATE OR DELETE ON penstock.mapping_version
  FOR EACH ROW EXECUTE FUNCTION penstock.mapping_version_kept();

ALTER TABLE penstock.snapshot ADD COLUMN data_source_id bigint;
COMMENT ON COLUMN penstock.snapshot.data_source_id IS 'Where its rows came from; no reference, for a source may go and its snapshots stay.';
ALTER TABLE penstock.snapshot ADD CONSTRAINT snapshot_mapping_version
  FOREIGN KEY (mapping_id, mapping_version) REFERENCES penstock.mapping_version;
CREATE INDEX snapshot_mapping ON penstock.snapshot (mapping_id, mapping_version, created_at);
CREATE INDEX snapshot_created ON penstock.snapshot (created_at, snapshot_id);
CREATE INDEX snapshot_owner ON penstock.snapshot (owner_username, created_at, snapshot_id);
