-- A new instance. Invariant: the caller holds its snapshot, and has counted the others under the limits' lock.
INSERT INTO penstock.instance (
  snapshot_id, mapping_id, mapping_version, owner_username, wrapper_type, name, description, status, url_slug, place,
  launch, ttl, inactivity_timeout, expires_at, cpu_cores, memory_gb)
VALUES (
  :snapshot_id, :mapping_id, :mapping_version, :owner_username, :wrapper_type, :name, :description, :status, :url_slug,
  :place, :launch, :ttl, :inactivity_timeout, penstock.now() + :ttl::interval, :cpu_cores, :memory_gb)
RETURNING instance_id
