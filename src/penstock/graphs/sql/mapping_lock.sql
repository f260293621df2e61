-- Held until the transaction ends: of two who change a mapping, one is second. Snapshots of it can be made meanwhile.
SELECT revision FROM penstock.mapping WHERE mapping_id = :mapping_id FOR NO KEY UPDATE
