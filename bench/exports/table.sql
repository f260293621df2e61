-- Twelve columns of the kinds that ledgers have; numerics are typed, so that every method can give the same types.
CREATE TABLE ledger (
  id bigint NOT NULL, customer int NOT NULL, branch smallint NOT NULL, item int, amount numeric(12, 2) NOT NULL,
  rate numeric(10, 4), weight float8 NOT NULL, reference text NOT NULL, digest text, status text NOT NULL,
  booked_at timestamptz NOT NULL, checked boolean NOT NULL
);
INSERT INTO ledger
SELECT g, g * 7919 % 1000000, g % 300, nullif(g % 10, 0) * (g % 5000), (g * 31 % 100000000) / 100.0,
       nullif(g % 7, 0) * (g * 17 % 100000) / 10000.0, g * 0.37, 'order-' || g,
       CASE WHEN g % 5 = 0 THEN NULL ELSE md5(g::text) END, (ARRAY['open', 'paid', 'void', 'held'])[1 + g % 4],
       timestamptz '2024-01-01 00:00:00+00' + make_interval(secs => g), g % 3 = 0
FROM generate_series(1::bigint, :rows) g
