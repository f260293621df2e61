SELECT count(*) AS files, coalesce(sum(size_bytes), 0)::bigint AS bytes FROM penstock.upload WHERE owner_username = :owner_username
