-- The audit is kept four times as long as the jobs. Index: audit_at.
DELETE FROM penstock.audit WHERE at < penstock.now() - make_interval(days => :days * 4)
