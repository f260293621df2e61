-- All sources that somebody may read from.
SELECT s.data_source_id FROM penstock.data_source s
WHERE penstock.may_use_source(s.data_source_id, :username::text, :is_admin)
