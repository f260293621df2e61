UPDATE penstock.instance SET placed = false WHERE instance_id = :instance_id AND launch = :launch AND placed
