-- Locks: the row against its deletion, so that no share outlives what it is about.
SELECT true FROM penstock.data_source WHERE data_source_id = :resource_id::text::bigint FOR KEY SHARE
