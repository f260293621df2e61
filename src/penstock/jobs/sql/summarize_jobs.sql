-- Summarizes the stretches of job_where that begin at these pages and have no summary. Locks: none that a reader or writer
-- of job waits for; VACUUM and changes of the table wait, and it for them.
SELECT coalesce(sum(brin_summarize_range('penstock.job_where', page)), 0)::bigint
FROM generate_series(:first::bigint, :last, 32) page
