-- The demo warehouse: a small bank, and a company's invoices and payments. The same rows every time: what looks random
-- is arithmetic with primes. Planted: rings of accounts that pass large sums around, and payments that do not fit.

CREATE TABLE people AS
SELECT i AS id,
       (['Ada', 'Grace', 'Alan', 'Edsger', 'Barbara', 'Donald', 'Radia', 'Ken', 'Frances', 'Tony', 'Adele', 'Niklaus',
         'Shafi', 'Leslie', 'Margaret', 'John'])[1 + i * 7919 % 16]
         || ' ' ||
       (['Abel', 'Bose', 'Curie', 'Dirac', 'Euler', 'Fermi', 'Gauss', 'Hertz', 'Ising', 'Joule', 'Klein', 'Lovelace',
         'Maxwell', 'Noether', 'Ohm', 'Planck', 'Riemann', 'Stokes', 'Turing', 'Weyl'])[1 + i * 104729 % 20] AS name,
       (['Zürich', 'Wien', 'Paris', 'Porto', 'Oslo', 'Kraków', 'Tallinn'])[1 + i * 31 % 7] AS city,
       DATE '2015-01-01' + CAST(i * 17 % 3650 AS INTEGER) AS joined
FROM range(1, 2001) AS t (i);
ALTER TABLE people ADD PRIMARY KEY (id);

CREATE TABLE accounts AS
SELECT i AS id, 1 + (i - 1) * 7919 % 2000 AS owner_id, 'CH' || lpad(CAST(i * 1299709 % 10000000 AS VARCHAR), 12, '0') AS iban,
       CAST(i * 15485863 % 5000000 / 100.0 AS DECIMAL(12, 2)) AS balance
FROM range(1, 3001) AS t (i);
ALTER TABLE accounts ADD PRIMARY KEY (id);

CREATE TABLE devices AS
SELECT i AS id, (['phone', 'laptop', 'tablet'])[1 + i % 3] AS kind FROM range(1, 1801) AS t (i);
ALTER TABLE devices ADD PRIMARY KEY (id);

-- Rings: account number, place in the ring, and where the money goes next.
CREATE TEMP TABLE ring AS
SELECT ring, place, 1 + (ring * 977 + place * 331) % 3000 AS account_id, 1 + (ring * 977 + (place + 1) % size * 331) % 3000 AS next_id
FROM (VALUES (1, 5), (2, 6), (3, 8)) AS r (ring, size), range(0, 8) AS p (place)
WHERE place < size;

CREATE TABLE logins AS
SELECT DISTINCT person_id, device_id
FROM (
  SELECT id AS person_id, 1 + id * 6700417 % 1800 AS device_id FROM people
  UNION ALL SELECT id, 1 + id * 86028121 % 1800 FROM people WHERE id % 3 = 0
  UNION ALL SELECT owner_id, 1700 + ring FROM ring JOIN accounts ON accounts.id = account_id
);

CREATE TABLE transfers AS
SELECT row_number() OVER (ORDER BY made_at, from_account, to_account) AS id, *
FROM (
  SELECT 1 + i * 7919 % 3000 AS from_account, 1 + (i * 104729 + i // 3000) % 3000 AS to_account,
         CAST(5 + i * 15485863 % 480000 / 100.0 AS DECIMAL(12, 2)) AS amount,
         TIMESTAMP '2026-10-01 00:00:00' + to_seconds(i * 67 % 2592000) AS made_at
  FROM range(1, 40001) AS t (i)
  UNION ALL
  SELECT 1 + i * 1301 % 3000, 1 + i * 2741 % 3000, CAST(9000 + i * 37 % 900 AS DECIMAL(12, 2)),
         TIMESTAMP '2026-10-01 06:00:00' + to_seconds(i * 32503 % 2592000)
  FROM range(1, 41) AS t (i)
  UNION ALL
  SELECT account_id, next_id, CAST(9900 - 13 * place - 7 * lap AS DECIMAL(12, 2)),
         TIMESTAMP '2026-10-12 09:00:00' + to_hours(24 * lap + 3 * place + ring)
  FROM ring, range(0, 3) AS l (lap)
)
WHERE from_account <> to_account;
ALTER TABLE transfers ADD PRIMARY KEY (id);

CREATE TABLE invoices AS
SELECT 'INV-' || lpad(CAST(i AS VARCHAR), 6, '0') AS invoice_no, 1 + i * 7919 % 400 AS customer_id,
       CAST(20 + i * 15485863 % 250000 / 100.0 AS DECIMAL(12, 2)) AS amount, 'EUR' AS currency,
       DATE '2026-10-01' + CAST(i * 13 % 31 AS INTEGER) AS issued
FROM range(1, 5001) AS t (i);
ALTER TABLE invoices ADD PRIMARY KEY (invoice_no);

-- Payments: most to the cent, some with bank charges taken off, some in two parts, some late, some never, some twice.
CREATE TABLE payments AS
SELECT 'PAY-' || lpad(CAST(row_number() OVER (ORDER BY invoice_no, part) AS VARCHAR), 6, '0') AS payment_no, *
FROM (
  SELECT invoice_no, n, customer_id, currency, 0 AS part,
         CASE WHEN n % 10 = 7 THEN amount - CAST(0.35 AS DECIMAL(12, 2))
              WHEN n % 25 = 3 THEN amount + CAST(12.50 AS DECIMAL(12, 2))
              WHEN n % 20 = 11 THEN CAST(amount / 2 AS DECIMAL(12, 2))
              ELSE amount END AS amount,
         issued + CAST(CASE WHEN n % 30 = 17 THEN 45 ELSE 2 + n % 12 END AS INTEGER) AS paid
  FROM (SELECT *, CAST(substr(invoice_no, 5) AS INTEGER) AS n FROM invoices)
  WHERE n % 50 <> 0
  UNION ALL
  SELECT invoice_no, n, customer_id, currency, 1, amount - CAST(amount / 2 AS DECIMAL(12, 2)), issued + CAST(9 + n % 5 AS INTEGER)
  FROM (SELECT *, CAST(substr(invoice_no, 5) AS INTEGER) AS n FROM invoices)
  WHERE n % 20 = 11 AND n % 50 <> 0
  UNION ALL
  SELECT invoice_no, n, customer_id, currency, 2, amount, issued + 6
  FROM (SELECT *, CAST(substr(invoice_no, 5) AS INTEGER) AS n FROM invoices)
  WHERE n % 500 = 9
);
ALTER TABLE payments ADD PRIMARY KEY (payment_no);
ALTER TABLE payments DROP COLUMN n;
ALTER TABLE payments DROP COLUMN part
