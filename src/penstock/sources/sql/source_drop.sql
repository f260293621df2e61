DELETE FROM penstock.data_source WHERE data_source_id = :data_source_id
