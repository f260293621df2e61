-- Who may use a data source: one rule, asked wherever something reads from one.

CREATE TABLE penstock.dropped_data_source (
  data_source_id bigint PRIMARY KEY,
  owner          text NOT NULL,
  was_default    boolean NOT NULL,
  dropped_at     timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE penstock.dropped_data_source IS 'Snapshots and evidence outlive their source; this says whose it was.';

CREATE FUNCTION penstock.note_dropped_source() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO penstock.dropped_data_source (data_source_id, owner, was_default)
  VALUES (OLD.data_source_id, OLD.owner, OLD.is_default);
  RETURN OLD;
END
$$;
CREATE TRIGGER data_source_dropped AFTER DELETE ON penstock.data_source
  FOR EACH ROW EXECUTE FUNCTION penstock.note_dropped_source();
CREATE TRIGGER data_source_shares AFTER DELETE ON penstock.data_source
  FOR EACH ROW EXECUTE FUNCTION penstock.delete_shares('data_source', 'data_source_id');

CREATE FUNCTION penstock.may_use_source(p_data_source_id bigint, p_username text, p_is_admin boolean)
RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT p_is_admin OR coalesce(
    (SELECT s.is_default OR s.owner = p_username
            OR penstock.share_role('data_source', s.data_source_id::text, p_username) IS NOT NULL
     FROM penstock.data_source s WHERE s.data_source_id = p_data_source_id),
    (SELECT d.was_default OR d.owner = p_username
     FROM penstock.dropped_data_source d WHERE d.data_source_id = p_data_source_id),
    false)
$$;

CREATE FUNCTION penstock.may_lend_source(p_data_source_id bigint, p_owner text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT penstock.has_admin_role(p_owner) OR EXISTS (
    SELECT FROM penstock.data_source s
    WHERE s.data_source_id = p_data_source_id AND (s.is_default OR s.owner = p_owner)
  )
$$;
COMMENT ON FUNCTION penstock.may_lend_source IS 'Whether a mapping or recipe of this owner, once shared, also lets others read its source: a right that was granted is not passed on.';
