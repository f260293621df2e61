-- A snapshot that is about to go: nobody begins anything with it until the transaction ends.
SELECT * FROM penstock.snapshot WHERE snapshot_id = :snapshot_id FOR UPDATE
