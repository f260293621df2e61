-- Who may use or edit a data source, mapping or recipe that is not theirs.

CREATE TABLE penstock.share (
  resource_type text NOT NULL,
  resource_id   text NOT NULL,
  username      text NOT NULL,
  role          text NOT NULL,
  created_by    text NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT penstock.now(),
  PRIMARY KEY (resource_type, resource_id, username),
  CONSTRAINT share_resource CHECK (resource_type IN ('data_source', 'mapping', 'recipe')),
  CONSTRAINT share_role CHECK (role IN ('use', 'edit'))
);
COMMENT ON COLUMN penstock.share.username IS '* is everybody who can sign in.';
COMMENT ON COLUMN penstock.share.resource_id IS 'No reference, for it is one of three tables: a trigger of each deletes its shares.';

CREATE FUNCTION penstock.share_role(p_type text, p_id text, p_username text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT role FROM penstock.share
  WHERE resource_type = p_type AND resource_id = p_id AND username IN (p_username, '*')
  ORDER BY role LIMIT 1
$$;
COMMENT ON FUNCTION penstock.share_role IS 'edit, use or NULL: the most that was granted to a user, by name or as one of everybody.';

CREATE FUNCTION penstock.has_admin_role(p_username text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT p_username IN ('operator', 'penstock') OR EXISTS (
    SELECT FROM penstock.account
    WHERE username = p_username AND role IN ('admin', 'ops') AND is_active
  )
$$;
COMMENT ON FUNCTION penstock.has_admin_role IS 'For work that goes on without a request; the two names are reserved for the operator''s token and the platform.';

CREATE FUNCTION penstock.delete_shares() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM penstock.share
  WHERE resource_type = TG_ARGV[0] AND resource_id = to_jsonb(OLD) ->> TG_ARGV[1];
  RETURN OLD;
END
$$;
