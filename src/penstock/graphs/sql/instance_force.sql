UPDATE penstock.instance SET force_stop = true WHERE instance_id = :instance_id AND status = 'stopping'
