SELECT count(*) FROM penstock.account WHERE :is_active::boolean IS NULL OR is_active = :is_active
