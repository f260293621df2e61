-- Until the transaction ends: of two uploads of one user who has room for one, one is refused.
SELECT pg_advisory_xact_lock(hashtext('penstock.upload'), hashtext(:owner_username))
