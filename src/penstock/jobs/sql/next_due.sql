-- In how many seconds the next scheduled or parked row is due. Index: live_due (its first entry).
SELECT date_part('epoch', min(wake_at) - penstock.now()) FROM penstock.live WHERE status IN (2, 3)
