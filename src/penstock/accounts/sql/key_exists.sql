SELECT EXISTS (SELECT FROM penstock_secret.api_key WHERE api_key_id = :api_key_id AND username = :username)
