-- The rows of a sample of the live table's pages, by queue and status.
SELECT queue, status, count(*) AS rows
FROM penstock.live TABLESAMPLE SYSTEM (:percent)
GROUP BY queue, status
