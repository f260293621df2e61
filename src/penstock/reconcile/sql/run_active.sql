-- How many runs of a user are under way. Index: run_open.
SELECT count(*) FROM penstock.run WHERE status IN ('staging', 'ready', 'executing') AND owner_username = :owner
