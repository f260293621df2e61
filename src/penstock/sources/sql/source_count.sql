SELECT count(*) FROM penstock.data_source WHERE :type::text IS NULL OR type = :type
