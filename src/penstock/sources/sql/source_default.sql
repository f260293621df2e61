SELECT data_source_id FROM penstock.data_source WHERE is_default
