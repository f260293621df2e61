-- Every sealed secret, for a change of keys; locked until they are sealed anew.
SELECT data_source_id, credentials FROM penstock.data_source WHERE credentials IS NOT NULL ORDER BY data_source_id FOR UPDATE
