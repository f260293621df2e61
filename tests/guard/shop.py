"""A small shop database for DuckDB and PostgreSQL, on which statements run."""

from __future__ import annotations

TABLES = """
CREATE TABLE customers (id INTEGER, name VARCHAR(100), email VARCHAR(100), country VARCHAR(2),
    created_at TIMESTAMP, active BOOLEAN, score DOUBLE PRECISION, tags VARCHAR[], profile {json});
INSERT INTO customers VALUES
    (1, 'Ann', 'ann@a.example', 'DE', '2024-01-01 10:00:00', true, 7.5, ARRAY['new', 'vip'],
        '{{"plan": "pro", "address": {{"city": "Ulm"}}}}'),
    (2, 'Bob', 'bob@b.example', 'DE', '2024-01-02 11:30:00', false, 3.25, ARRAY['old'],
        '{{"plan": "free", "address": {{"city": "Kiel"}}}}'),
    (3, 'Cléo', 'cleo@c.example', 'FR', '2024-02-03 12:45:30', true, NULL, ARRAY['new'],
        '{{"plan": "pro"}}'),
    (4, 'Dora', NULL, 'IT', '2024-03-04 00:00:00', NULL, 9.0, NULL, NULL);
CREATE TABLE orders (id INTEGER, customer_id INTEGER, amount DECIMAL(12, 2), status VARCHAR(10),
    ordered_on DATE, placed_at TIMESTAMP, note VARCHAR(100));
INSERT INTO orders VALUES
    (10, 1, 19.99, 'paid', '2024-01-05', '2024-01-05 08:00:00', 'first'),
    (11, 1, 250.00, 'sent', '2024-01-20', '2024-01-20 09:15:00', NULL),
    (12, 2, 5.50, 'paid', '2024-02-10', '2024-02-10 23:59:59', 'x'),
    (13, 3, 99.90, 'open', '2024-02-29', '2024-02-29 12:00:00', NULL);
CREATE TABLE edges (src INTEGER, dst INTEGER, weight DOUBLE PRECISION);
INSERT INTO edges VALUES (1, 2, 0.5), (2, 3, 1.5), (3, 4, 2.5), (4, 1, 0.25);
"""

DUCKDB_TABLES = TABLES.format(json="JSON")
POSTGRES_TABLES = TABLES.format(json="JSONB")
