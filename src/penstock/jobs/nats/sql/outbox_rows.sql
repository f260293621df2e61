-- Announcements that wait for NATS, counted to a bound.
SELECT count(*) FROM (SELECT FROM penstock.outbox LIMIT :most) AS waiting
