-- A snapshot, held until the transaction ends. Everybody takes live rows first, groups second and snapshots last.
SELECT * FROM penstock.snapshot WHERE snapshot_id = :snapshot_id FOR NO KEY UPDATE
