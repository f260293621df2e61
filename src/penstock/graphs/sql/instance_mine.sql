-- Index: instance_owner.
SELECT instance_id, name, status FROM penstock.instance WHERE owner_username = :owner ORDER BY created_at DESC, instance_id DESC
