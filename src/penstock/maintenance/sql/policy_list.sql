-- The policies in their order.
SELECT * FROM penstock.maintenance_policy ORDER BY position
