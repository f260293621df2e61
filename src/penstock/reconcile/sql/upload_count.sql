SELECT count(*) FROM penstock.upload WHERE :owner_username::text IS NULL OR owner_username = :owner_username::text
