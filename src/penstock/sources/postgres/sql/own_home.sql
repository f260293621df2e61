-- Whether this database is a Penstock's own, whatever name or address led here.
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'penstock_secret')
