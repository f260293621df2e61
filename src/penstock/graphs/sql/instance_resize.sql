UPDATE penstock.instance
SET cpu_cores = coalesce(:cpu_cores, cpu_cores), memory_gb = coalesce(:memory_gb, memory_gb), updated_at = penstock.now()
WHERE instance_id = :instance_id
