SELECT EXISTS (SELECT FROM penstock.api_key WHERE api_key_id = :api_key_id AND username = :username)
