-- Every sealed secret, for a change of keys; locked until they are sealed anew.
SELECT data_source_id, credentials FROM penstock_secret.data_source_credentials ORDER BY data_source_id FOR UPDATE
