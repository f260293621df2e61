-- Shares of mappings, and what they let people run and read.

CREATE TRIGGER mapping_shares AFTER DELETE ON penstock.mapping
  FOR EACH ROW EXECUTE FUNCTION penstock.delete_shares('mapping', 'mapping_id');

CREATE FUNCTION penstock.may_run_mapping(
  p_mapping_id bigint, p_data_source_id bigint, p_username text, p_is_admin boolean
) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT penstock.may_use_source(p_data_source_id, p_username, p_is_admin) OR EXISTS (
    SELECT FROM penstock.mapping m
    WHERE m.mapping_id = p_mapping_id
      AND penstock.share_role('mapping', m.mapping_id::text, p_username) IS NOT NULL
      AND penstock.may_lend_source(p_data_source_id, m.owner_username)
  )
$$;
