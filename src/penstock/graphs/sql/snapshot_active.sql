-- How many snapshots of a user are under way. Index: snapshot_open.
SELECT count(*) FROM penstock.snapshot WHERE status IN ('pending', 'creating') AND owner_username = :owner
