SELECT penstock.share_role(:resource_type, :resource_id, :username)
