-- The set of policies is replaced as a whole, in one transaction.
DELETE FROM penstock.maintenance_policy
