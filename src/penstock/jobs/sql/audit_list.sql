-- What was changed by hand, newest first. Index: audit_subject or audit_at.
SELECT at, actor, action, subject, detail FROM penstock.audit
WHERE :subject::text IS NULL OR subject = :subject
ORDER BY at DESC
OFFSET :offset LIMIT :limit
