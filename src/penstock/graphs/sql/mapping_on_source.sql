-- The mappings that need a data source: how many, and the first of them. Index: mapping_source.
SELECT mapping_id, count(*) OVER () AS total FROM penstock.mapping WHERE data_source_id = :data_source_id
ORDER BY mapping_id LIMIT :limit
