DELETE FROM penstock.schedule WHERE name = :name
