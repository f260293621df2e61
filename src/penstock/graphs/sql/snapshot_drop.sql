-- Favourites and the list of its jobs go with it; instances that failed or are stopping forget it.
DELETE FROM penstock.snapshot WHERE snapshot_id = :snapshot_id
