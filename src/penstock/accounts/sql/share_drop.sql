DELETE FROM penstock.share
WHERE resource_type = :resource_type AND resource_id = :resource_id AND username = :username
