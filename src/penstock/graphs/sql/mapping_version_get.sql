-- One version of a mapping; without a number, its current one. Index: mapping_version primary key.
SELECT v.*
FROM penstock.mapping m
JOIN penstock.mapping_version v ON v.mapping_id = m.mapping_id AND v.version = coalesce(:version::int, m.current_version)
WHERE m.mapping_id = :mapping_id
