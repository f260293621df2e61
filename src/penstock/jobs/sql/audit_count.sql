SELECT count(*) FROM penstock.audit WHERE :subject::text IS NULL OR subject = :subject
