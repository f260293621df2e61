-- Twelve columns of the kinds that ledgers have; numerics are typed, so that every method can give the same types.
CREATE TABLE ledger AS
SELECT g AS id,
       (g * 7919 % 1000000)::int AS customer,
       (g % 300)::smallint AS branch,
       CASE WHEN g % 10 = 0 THEN NULL ELSE (g % 5000)::int END AS item,
       ((g * 31 % 100000000) / 100.0)::numeric(12, 2) AS amount,
       CASE WHEN g % 7 = 0 THEN NULL ELSE ((g * 17 % 1000000) / 10000.0)::numeric(10, 4) END AS rate,
       (g * 0.37)::float8 AS weight,
       'order-' || g AS reference,
       CASE WHEN g % 5 = 0 THEN NULL ELSE md5(g::text) END AS digest,
       (ARRAY['open', 'paid', 'void', 'held'])[1 + g % 4] AS status,
       timestamptz '2024-01-01 00:00:00+00' + make_interval(secs => g) AS booked_at,
       g % 3 = 0 AS checked
FROM generate_series(1::bigint, :rows) g
