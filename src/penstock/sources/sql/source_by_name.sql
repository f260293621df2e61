SELECT data_source_id FROM penstock.data_source WHERE name = :name
