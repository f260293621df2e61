-- Which job exports which entity. Invariant: one job an entity.
INSERT INTO penstock.snapshot_export (snapshot_id, position, job_type, entity_name, from_node, to_node, job_id)
SELECT :snapshot_id, t.position, t.job_type, t.entity_name, t.from_node, t.to_node, t.job_id
FROM unnest(:positions::int[], :job_types::text[], :entity_names::text[], :from_nodes::text[], :to_nodes::text[], :job_ids::bigint[])
  AS t (position, job_type, entity_name, from_node, to_node, job_id)
