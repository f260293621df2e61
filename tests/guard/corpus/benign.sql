## duckdb,postgres,mysql,trino,bigquery
SELECT 1 AS one

## duckdb,postgres,mysql,trino,bigquery
SELECT id, name FROM customers

## duckdb,postgres,mysql,trino,bigquery
SELECT id, name FROM customers;

## duckdb,postgres,mysql,trino,bigquery
SELECT * FROM customers

## duckdb,postgres,mysql,trino,bigquery
select Id as Customer_Id, NAME from Customers c where c.ACTIVE

## duckdb,postgres,mysql,trino,bigquery
-- a comment; DROP TABLE customers
SELECT id /* DELETE FROM customers */ FROM customers -- the end

## duckdb,postgres,mysql,trino,bigquery
SELECT 'DROP TABLE customers; -- not a comment' AS text, 'pg_sleep(10)' AS call

## duckdb,postgres,mysql,trino
SELECT 'it''s' AS quoted

## duckdb,postgres,mysql,trino,bigquery
SELECT name FROM customers WHERE name LIKE 'A%' AND NOT name LIKE '%z'

## duckdb,postgres,mysql,trino,bigquery
SELECT id, amount FROM orders WHERE amount BETWEEN 10 AND 100 OR status IN ('paid', 'sent')

## duckdb,postgres,mysql,trino,bigquery
SELECT c.id, c.name, o.amount FROM customers AS c JOIN orders AS o ON o.customer_id = c.id

## duckdb,postgres,mysql,trino,bigquery
SELECT c.id, o.amount FROM customers c LEFT JOIN orders o ON o.customer_id = c.id AND o.status = 'paid'

## duckdb,postgres,trino,bigquery
SELECT c.id, o.id AS order_id FROM customers c FULL OUTER JOIN orders o ON o.customer_id = c.id

## duckdb,postgres,mysql,trino,bigquery
SELECT c.id, o.id AS order_id FROM customers c CROSS JOIN orders o

## duckdb,postgres,mysql,trino,bigquery
SELECT a.src, b.dst FROM edges a, edges b WHERE a.dst = b.src

## duckdb,postgres,trino,mysql,bigquery
SELECT id, ordered_on FROM orders JOIN (SELECT id AS customer_id FROM customers) AS c USING (customer_id)

## duckdb,postgres,mysql,trino,bigquery
SELECT country, count(*) AS n, sum(score) AS total, avg(score) AS mean, min(score) AS low, max(score) AS high FROM customers GROUP BY country

## duckdb,postgres,mysql,trino,bigquery
SELECT country, count(DISTINCT name) AS names FROM customers GROUP BY country HAVING count(*) > 1 ORDER BY names DESC, country

## duckdb,postgres,mysql,trino,bigquery
SELECT DISTINCT country FROM customers ORDER BY country LIMIT 2

## duckdb,postgres,mysql,bigquery
SELECT id FROM customers ORDER BY id LIMIT 2 OFFSET 1

## duckdb,postgres,mysql,trino,bigquery
WITH rich AS (SELECT id FROM customers WHERE score > 5) SELECT id FROM rich

## duckdb,postgres,mysql,trino,bigquery
WITH a AS (SELECT id FROM customers), b AS (SELECT id FROM a WHERE id > 1) SELECT b.id FROM b JOIN a ON a.id = b.id

## bigquery
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r

## duckdb,postgres,mysql,trino
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r

## duckdb,postgres
WITH RECURSIVE reach AS (SELECT src, dst FROM edges UNION SELECT r.src, e.dst FROM reach r JOIN edges e ON e.src = r.dst) SELECT src, dst FROM reach

## duckdb,postgres,mysql,trino
SELECT id FROM customers UNION SELECT customer_id FROM orders

## duckdb,postgres,mysql,trino,bigquery
SELECT id FROM customers UNION ALL SELECT customer_id FROM orders

## duckdb,postgres,mysql,trino
SELECT id FROM customers INTERSECT SELECT customer_id FROM orders

## duckdb,postgres,mysql,trino
SELECT id FROM customers EXCEPT SELECT customer_id FROM orders

## duckdb,postgres,mysql,trino
(SELECT id FROM customers) UNION ALL (SELECT customer_id FROM orders) ORDER BY 1 LIMIT 3

## duckdb,postgres,mysql,trino
(SELECT id FROM customers)

## duckdb,postgres,trino
VALUES (1, 'a'), (2, 'b')

## duckdb,postgres,trino
SELECT x, y FROM (VALUES (1, 'a'), (2, 'b')) AS t(x, y)

## duckdb,postgres,mysql,trino,bigquery
SELECT id, CASE WHEN score > 5 THEN 'high' WHEN score IS NULL THEN 'none' ELSE 'low' END AS band FROM customers

## duckdb,postgres,mysql,trino,bigquery
SELECT id, CASE status WHEN 'paid' THEN 1 ELSE 0 END AS paid FROM orders

## duckdb,postgres,mysql,trino,bigquery
SELECT coalesce(name, 'unknown') AS name, nullif(country, 'DE') AS country FROM customers

## duckdb,postgres,mysql,trino,bigquery
SELECT greatest(1, 2, 3) AS g, least(1, 2, 3) AS l

## duckdb,postgres,mysql,trino,bigquery
SELECT id FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id)

## duckdb,postgres,mysql,trino,bigquery
SELECT id FROM customers WHERE id NOT IN (SELECT customer_id FROM orders)

## duckdb,postgres,mysql,trino
SELECT id FROM customers WHERE score >= ALL (SELECT score FROM customers WHERE score IS NOT NULL)

## duckdb,postgres,mysql,trino
SELECT id FROM customers WHERE id = ANY (SELECT customer_id FROM orders)

## duckdb,postgres,mysql,trino,bigquery
SELECT name, (SELECT count(*) FROM orders o WHERE o.customer_id = c.id) AS orders FROM customers c

## duckdb,postgres,mysql,trino,bigquery
SELECT id, row_number() OVER (PARTITION BY country ORDER BY id) AS n FROM customers

## duckdb,postgres,mysql,trino,bigquery
SELECT id, rank() OVER (ORDER BY score DESC, id) AS r, dense_rank() OVER (ORDER BY country) AS d, ntile(2) OVER (ORDER BY id) AS t FROM customers

## duckdb,postgres,mysql,trino,bigquery
SELECT id, lag(amount) OVER (ORDER BY id) AS before_it, lead(amount, 1) OVER (ORDER BY id) AS after_it FROM orders

## duckdb,postgres,mysql,trino,bigquery
SELECT id, sum(amount) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running FROM orders

## duckdb,postgres,mysql,trino,bigquery
SELECT id, first_value(id) OVER w AS f, last_value(id) OVER w AS l FROM orders WINDOW w AS (PARTITION BY status ORDER BY id)

## duckdb,postgres,mysql,trino,bigquery
SELECT percent_rank() OVER (ORDER BY id) AS p, cume_dist() OVER (ORDER BY id) AS c FROM orders

## duckdb,postgres,trino
SELECT country, active, count(*) AS n FROM customers GROUP BY GROUPING SETS ((country, active), (country), ())

## duckdb,postgres,trino
SELECT country, active, count(*) AS n FROM customers GROUP BY CUBE (country, active)

## duckdb,postgres,trino,bigquery
SELECT country, active, count(*) AS n FROM customers GROUP BY ROLLUP (country, active)

## duckdb,postgres,trino
SELECT count(*) FILTER (WHERE active) AS active, count(*) AS everyone FROM customers

## duckdb,postgres,mysql,trino,bigquery
SELECT abs(-1) AS a, round(1.567, 2) AS r, ceil(1.2) AS c, floor(1.8) AS f, sqrt(16) AS s, power(2, 3) AS p, mod(7, 3) AS m, exp(0) AS e, ln(1) AS l, sign(-3) AS g

## duckdb,postgres,mysql,trino
SELECT sin(0) AS s, cos(0) AS c, tan(0) AS t, asin(0) AS a, acos(1) AS b, atan(0) AS d, atan2(0, 1) AS e, degrees(0) AS f, radians(0) AS r, pi() AS p

## duckdb,postgres,mysql,trino
SELECT 1 + 2 * 3 - 4 AS x, 7 % 3 AS m, -5 AS n, (1 + 2) * 3 AS y

## duckdb,postgres,mysql,trino,bigquery
SELECT upper(name) AS u, lower(name) AS l, length(name) AS n, trim(name) AS t, replace(name, 'a', 'b') AS r, substring(name, 1, 2) AS s, reverse(name) AS v FROM customers

## duckdb,postgres,mysql,trino,bigquery
SELECT concat(name, ' ', country) AS c, lpad(name, 10, '.') AS l, rpad(name, 10, '.') AS r FROM customers

## duckdb,postgres,mysql
SELECT left(name, 2) AS l, right(name, 2) AS r, repeat(name, 2) AS p, ascii(name) AS a, concat_ws('-', name, country) AS w FROM customers

## duckdb,postgres,mysql,trino
SELECT position('a' IN name) AS p, trim(BOTH 'A' FROM name) AS t, trim(LEADING 'A' FROM name) AS l FROM customers

## duckdb,postgres,trino
SELECT split_part(email, '@', 2) AS domain, strpos(email, '@') AS at FROM customers

## duckdb,postgres,trino,bigquery
SELECT name || ' ' || country AS both_of_them FROM customers

## duckdb,postgres,mysql,trino
SELECT CAST(id AS DECIMAL(10, 2)) AS d, CAST(amount AS CHAR(20)) AS c FROM orders WHERE 1 = 0

## duckdb,postgres,trino
SELECT CAST(id AS VARCHAR) AS text, CAST('12' AS INTEGER) AS n, CAST('2024-01-02' AS DATE) AS d, CAST('2024-01-02 03:04:05' AS TIMESTAMP) AS t FROM customers

## duckdb,postgres
SELECT id::text AS t, '1.25'::numeric(5, 2) AS n, amount::double precision AS d, ordered_on::timestamp AS ts FROM orders

## duckdb,postgres,trino
SELECT DATE '2024-02-29' AS d, TIMESTAMP '2024-02-29 12:00:00' AS t, INTERVAL '1' DAY AS i

## duckdb,postgres,mysql,trino,bigquery
SELECT extract(YEAR FROM ordered_on) AS y, extract(MONTH FROM ordered_on) AS m, extract(DAY FROM ordered_on) AS d FROM orders

## duckdb,postgres,trino
SELECT date_trunc('month', ordered_on) AS m, count(*) AS n FROM orders GROUP BY date_trunc('month', ordered_on)

## duckdb,postgres,trino
SELECT date_trunc('hour', placed_at) AS h, placed_at + INTERVAL '2' HOUR AS later FROM orders

## duckdb,postgres
SELECT ordered_on + 1 AS next_day, ordered_on - DATE '2024-01-01' AS days, placed_at - INTERVAL '1 day 2 hours' AS before_it FROM orders

## duckdb,postgres,mysql,trino,bigquery volatile
SELECT current_date AS d, current_timestamp AS t

## duckdb,postgres,trino volatile
SELECT now() AS n, random() AS r FROM customers

## duckdb,postgres,trino
SELECT id FROM orders WHERE note IS DISTINCT FROM 'x' AND note IS NOT DISTINCT FROM note

## duckdb,postgres,mysql,trino,bigquery
SELECT id FROM orders WHERE note IS NULL OR (note IS NOT NULL AND NOT status = 'paid')

## duckdb,postgres,mysql,bigquery
SELECT id FROM customers WHERE active IS TRUE OR active IS NOT FALSE

## duckdb,postgres,mysql,trino,bigquery
SELECT id FROM orders WHERE amount <> 10 AND amount != 20 AND amount >= 5 AND amount <= 500

## duckdb,postgres,trino
SELECT id FROM customers WHERE name LIKE 'A!%%' ESCAPE '!' OR name LIKE 'B%'

## duckdb,postgres,mysql,trino
SELECT (1, 2) = (1, 2) AS same

## duckdb,postgres,trino
SELECT stddev(score) AS s, variance(score) AS v, stddev_pop(score) AS sp, var_samp(score) AS vs, corr(score, id) AS c, covar_pop(score, id) AS cp FROM customers

## duckdb,postgres,trino
SELECT regexp_replace(name, '[aeiou]', '_') AS r FROM customers

## duckdb,postgres,trino
SELECT array_agg(id ORDER BY id) AS ids FROM customers

## duckdb,postgres
SELECT string_agg(name, ', ' ORDER BY name) AS names FROM customers

## duckdb,postgres
SELECT bool_and(active) AS every_one, bool_or(active) AS some_one, bit_and(id) AS b, bit_or(id) AS o FROM customers

## duckdb,postgres
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY score) AS median, mode() WITHIN GROUP (ORDER BY country) AS m FROM customers

## duckdb,postgres
SELECT DISTINCT ON (country) country, id, name FROM customers ORDER BY country, id

## duckdb,postgres
SELECT id FROM customers ORDER BY score DESC NULLS LAST, id ASC NULLS FIRST

## duckdb,postgres
SELECT id FROM customers WHERE name ILIKE 'a%' OR name NOT ILIKE '%z'

## duckdb,postgres
SELECT id FROM customers WHERE name SIMILAR TO '(A|B)%'

## duckdb,postgres
SELECT id FROM customers WHERE name ~ '^[AB].*'

## duckdb,postgres
SELECT generate_series AS n FROM generate_series(1, 5)

## duckdb,postgres
SELECT n FROM generate_series(1, 5) AS g(n) WHERE n % 2 = 0

## duckdb,postgres
SELECT unnest(tags) AS tag, id FROM customers

## duckdb,postgres
SELECT id, t.tag FROM customers, unnest(tags) AS t(tag)

## duckdb,postgres
SELECT tags[1] AS head, array_length(tags, 1) AS n FROM customers

## duckdb,postgres
SELECT c.id, o.amount FROM customers c, LATERAL (SELECT amount FROM orders WHERE customer_id = c.id ORDER BY amount DESC LIMIT 1) AS o

## duckdb,postgres
SELECT c.id, o.n FROM customers c LEFT JOIN LATERAL (SELECT count(*) AS n FROM orders WHERE customer_id = c.id) AS o ON true

## duckdb,postgres
WITH x AS MATERIALIZED (SELECT id FROM customers), y AS NOT MATERIALIZED (SELECT id FROM x) SELECT id FROM y

## duckdb,postgres
SELECT profile ->> 'plan' AS plan FROM customers

## duckdb,postgres
SELECT profile -> 'address' ->> 'city' AS city FROM customers

## duckdb,postgres
SELECT md5(name) AS h FROM customers

## duckdb,postgres
SELECT E'tab\tnew\nline' AS e, E'quote\'s' AS q, E'back\\slash' AS b

## duckdb,postgres
SELECT $$it's "quoted"$$ AS d, $tag$a $$ b$tag$ AS t

## duckdb,postgres
SELECT 'back\slash' AS b, 'percent %s %(x)s' AS p, 'question ?' AS q, 'semi;colon' AS s, '--' AS d, '/*' AS c

## duckdb,postgres
SELECT 'ünïcödé ☃ 漢字' AS text, name AS "Größe in cm" FROM customers

## duckdb,postgres
SELECT id AS "select", name AS "from", country AS "user" FROM customers

## duckdb,postgres
SELECT "id", "name" FROM "customers" WHERE "active"

## duckdb,postgres
SELECT 1e3 AS a, .5 AS b, 5. AS c, 1.5e-2 AS d, 12345678901234567890 AS e

## duckdb,postgres
SELECT TRUE AND NOT FALSE AS t, NULL AS n

## duckdb,postgres
SELECT 5 & 3 AS a, 5 | 3 AS b, 1 << 3 AS c, 16 >> 2 AS d

## duckdb,postgres
SELECT count(*), max(id) FROM customers

## postgres,trino
SELECT id FROM customers TABLESAMPLE BERNOULLI (100)

## duckdb
SELECT id FROM customers TABLESAMPLE BERNOULLI (100 PERCENT)

## duckdb,postgres
SELECT make_date(2024, 2, 29) AS d, date_part('year', ordered_on) AS y, age(TIMESTAMP '2024-03-01', TIMESTAMP '2024-01-01') AS a FROM orders

## duckdb,postgres
SELECT id FROM customers WHERE id IN (1, 2, 3) AND (id, name) IN (SELECT id, name FROM customers)

## duckdb,postgres
SELECT customers.* FROM customers JOIN orders ON customers.id = orders.customer_id

## duckdb,postgres
SELECT c.* FROM customers AS c WHERE c.id = 1

## duckdb,postgres volatile
SELECT gen_random_uuid() AS id

## postgres
SELECT to_char(placed_at, 'YYYY-MM-DD HH24:MI:SS') AS t, to_date('2024-01-02', 'YYYY-MM-DD') AS d, to_number('1,234.5', '9,999.9') AS n FROM orders

## postgres
SELECT profile #>> '{address,city}' AS city, profile ? 'plan' AS has_plan, profile @> '{"plan": "pro"}'::jsonb AS pro FROM customers

## postgres
SELECT jsonb_build_object('id', id, 'name', name) AS j, to_jsonb(tags) AS t, jsonb_typeof(profile) AS k FROM customers

## postgres
SELECT key, value FROM customers, jsonb_each_text(profile -> 'address')

## postgres
SELECT json_agg(json_build_object('id', id) ORDER BY id) AS all_of_them FROM customers

## postgres
SELECT jsonb_path_query_first(profile, '$.address.city') AS city, jsonb_array_length('[1, 2]'::jsonb) AS n FROM customers

## postgres
SELECT regexp_matches(name, '([A-Z])', 'g') AS m FROM customers

## postgres
SELECT initcap(name) AS i, encode(convert_to(name, 'UTF8'), 'base64') AS b, to_hex(255) AS h, format('%s-%s', id, name) AS f, quote_literal(name) AS q, translate(name, 'ab', 'xy') AS t, overlay(name PLACING 'zz' FROM 1 FOR 2) AS o FROM customers

## postgres
SELECT date_bin('15 minutes', placed_at, TIMESTAMP '2024-01-01') AS b, justify_hours(INTERVAL '27 hours') AS j, make_interval(days => 10) AS m FROM orders

## postgres
SELECT placed_at AT TIME ZONE 'UTC' AS utc, extract(EPOCH FROM placed_at) AS e, isfinite(ordered_on) AS f FROM orders

## postgres
SELECT (placed_at, INTERVAL '1 day') OVERLAPS (TIMESTAMP '2024-01-01', TIMESTAMP '2024-12-31') AS o FROM orders

## postgres
SELECT array_position(tags, 'new') AS p, array_to_string(tags, ',') AS s, cardinality(tags) AS n, tags::text[] || ARRAY['x'] AS more, tags::text[] @> ARRAY['new'] AS has, tags::text[] && ARRAY['new', 'old'] AS any_of FROM customers

## postgres
SELECT ARRAY(SELECT id FROM orders WHERE customer_id = c.id ORDER BY id) AS ids FROM customers c

## postgres
SELECT id FROM customers WHERE 'new' = ANY (tags)

## postgres
SELECT tags[1:2] AS some, (ARRAY[1, 2, 3])[2] AS second, '{1,2}'::int[] AS ints FROM customers

## postgres
SELECT to_tsvector('english', name) AS v, plainto_tsquery('english', 'x') AS q, ts_rank(to_tsvector(name), to_tsquery('ann')) AS r FROM customers

## postgres
SELECT int4range(1, 10) AS r, lower(int4range(1, 10)) AS l, isempty(daterange('2024-01-01', '2024-01-01')) AS e

## postgres
SELECT host('10.0.0.1/24'::inet) AS h, masklen('10.0.0.0/24'::cidr::inet) AS m WHERE false

## postgres
SELECT count(*) AS n, sum(amount) FILTER (WHERE status = 'paid') OVER () AS paid FROM orders GROUP BY amount, status

## postgres
SELECT id, ctid FROM customers

## postgres
SELECT json_build_object('id', c.id, 'name', c.name) AS j FROM customers c

## postgres
SELECT g, g.g AS h, e.value, s.count FROM generate_series(1, 2) AS g CROSS JOIN jsonb_each('{"a": 1}') AS e CROSS JOIN (SELECT count(*) FROM orders) AS s

## postgres
SELECT ROW(1, 'a') AS r, num_nulls(1, NULL) AS n, width_bucket(5.3, 0, 10, 5) AS w, gcd(12, 18) AS g, trunc(1.567, 2) AS t, cbrt(27) AS c

## postgres
SELECT name COLLATE "C" AS n FROM customers ORDER BY name COLLATE "C"

## postgres
SELECT id FROM ONLY customers

## postgres
SELECT U&'d\0061t\+000061' AS u, B'101' AS bits, X'1F' AS hex

## postgres
SELECT sha256('a'::bytea) AS s, '\x41'::bytea AS b

## postgres
SELECT sum(amount) OVER (ORDER BY placed_at RANGE BETWEEN INTERVAL '1 day' PRECEDING AND CURRENT ROW EXCLUDE TIES) AS s FROM orders

## postgres
TABLE customers

## postgres
SELECT id FROM customers FETCH FIRST 2 ROWS ONLY

## postgres
SELECT regexp_split_to_table('a,b,c', ',') AS part

## postgres
SELECT x.id, x.name FROM jsonb_to_recordset('[{"id": 1, "name": "a"}]'::jsonb) AS x(id int, name text)

## postgres
SELECT string_to_array('a,b', ',') AS a, starts_with(name, 'A') AS s, substring(name FROM 1 FOR 2) AS f, substring(name FROM '[A-Z]') AS r FROM customers

## postgres
SELECT n, o FROM unnest(ARRAY['a', 'b']) WITH ORDINALITY AS t(n, o)

## postgres
SELECT grouping(country) AS g, country, count(*) AS n FROM customers GROUP BY ROLLUP (country)

## duckdb
FROM customers

## duckdb
FROM customers SELECT id, name WHERE id > 1

## duckdb
SELECT * EXCLUDE (tags, profile) FROM customers

## duckdb
SELECT * EXCLUDE (profile) REPLACE (upper(name) AS name) FROM customers

## duckdb
SELECT COLUMNS('i.*') FROM orders

## duckdb
SELECT min(COLUMNS(* EXCLUDE (note))) FROM orders

## duckdb
SELECT country, count(*) AS n FROM customers GROUP BY ALL ORDER BY ALL

## duckdb
SELECT id FROM customers QUALIFY row_number() OVER (PARTITION BY country ORDER BY id) = 1

## duckdb
SELECT list(id ORDER BY id) AS ids, list_sort(list(name)) AS names, len(list(id)) AS n FROM customers

## duckdb
SELECT list_transform([1, 2, 3], lambda x: x * 2) AS t, list_filter([1, 2, 3], lambda x: x > 1) AS f, [x + 1 FOR x IN [1, 2, 3] IF x > 1] AS c

## duckdb
SELECT list_reduce([1, 2, 3], lambda a, b: a + b) AS r, list_contains([1, 2], 2) AS c, list_distinct([1, 1, 2]) AS d, flatten([[1], [2]]) AS f

## duckdb
SELECT {'a': 1, 'b': 'x'} AS s, struct_pack(a := 1, b := 2) AS p, row(1, 2) AS r, MAP {'k': 1} AS m, MAP(['k'], [1]) AS n

## duckdb
SELECT s.a AS a, s['b'] AS b FROM (SELECT {'a': 1, 'b': 2} AS s) AS t

## duckdb
SELECT map_keys(m) AS k, map_values(m) AS v, m['k'] AS e FROM (SELECT MAP {'k': 1} AS m) AS t

## duckdb
SELECT arg_max(name, score) AS best, arg_min(name, score) AS worst, median(score) AS m, mode(country) AS c, quantile_cont(score, 0.5) AS q, quantile_disc(score, [0.25, 0.75]) AS qs FROM customers

## duckdb
SELECT approx_count_distinct(country) AS a, histogram(country) AS h, entropy(country) AS e, kurtosis(score) AS k, skewness(score) AS s, product(id) AS p FROM customers

## duckdb
SELECT max(name ORDER BY id) AS m, first(name ORDER BY id) AS f, last(name ORDER BY id) AS l, any_value(country) AS a FROM customers

## duckdb
SELECT strftime(placed_at, '%Y-%m-%d') AS t, strptime('2024-01-02', '%Y-%m-%d') AS p, epoch_ms(placed_at) AS e, epoch(placed_at) AS s FROM orders

## duckdb
SELECT date_diff('day', DATE '2024-01-01', ordered_on) AS d, date_add(ordered_on, INTERVAL 1 MONTH) AS a, last_day(ordered_on) AS l, dayname(ordered_on) AS n, monthname(ordered_on) AS mn, week(ordered_on) AS w, quarter(ordered_on) AS q FROM orders

## duckdb
SELECT time_bucket(INTERVAL '1 week', placed_at) AS b, count(*) AS n FROM orders GROUP BY b

## duckdb
SELECT ordered_on + INTERVAL 1 DAY AS a, ordered_on - INTERVAL (id) DAY AS b, to_days(3) AS c FROM orders

## duckdb
SELECT regexp_extract(email, '(.+)@(.+)', 2) AS d, regexp_matches(name, '^A') AS m, regexp_full_match(name, 'A.*') AS f, regexp_extract_all(name, '[a-z]') AS e FROM customers

## duckdb
SELECT name GLOB 'A*' AS g, contains(name, 'a') AS c, prefix(name, 'A') AS p, ends_with(name, 'a') AS s, levenshtein(name, 'Ann') AS l, jaccard(name, 'Ann') AS j FROM customers

## duckdb
SELECT string_split(email, '@') AS s, printf('%d-%s', id, name) AS p, format('{}', id) AS f, hash(name) AS h, sha256(name) AS sh, base64(encode(name)) AS b, bar(id, 0, 10) AS br FROM customers

## duckdb
SELECT json_extract(profile, '$.address.city') AS j, json_extract_string(profile, '$.plan') AS s, profile -> '$.address' AS a, profile ->> '$.address.city' AS c, json_keys(profile) AS k, json_type(profile) AS t FROM customers

## duckdb
SELECT TRY_CAST('x' AS INTEGER) AS t, typeof(orders.id) AS ty, if(active, 1, 0) AS i, ifnull(note, '-') AS n FROM customers, orders WHERE orders.customer_id = customers.id

## duckdb
SELECT 7 // 2 AS d, 7 % 2 AS m, 2 ** 3 AS p, 2 ^ 3 AS c, ~5 AS b, xor(5, 3) AS x, 1_000 AS t

## duckdb
SELECT a.id, b.placed_at FROM orders a ASOF JOIN orders b ON a.placed_at >= b.placed_at

## duckdb
SELECT a.id FROM customers a SEMI JOIN orders b ON a.id = b.customer_id

## duckdb
SELECT a.id FROM customers a ANTI JOIN orders b ON a.id = b.customer_id

## duckdb
SELECT a.id, b.src FROM customers a POSITIONAL JOIN edges b

## duckdb
SELECT id, name FROM customers UNION ALL BY NAME SELECT name, id FROM customers

## duckdb
SELECT * FROM orders PIVOT (sum(amount) FOR status IN ('paid', 'sent') GROUP BY customer_id)

## duckdb
SELECT r.range AS n FROM range(5) AS r

## duckdb
SELECT n FROM range(0, 10, 2) AS t(n)

## duckdb
SELECT u.x FROM unnest([1, 2, 3]) AS u(x)

## duckdb
SELECT id, amount FROM orders WHERE amount > (SELECT avg(amount) FROM orders) ORDER BY amount DESC LIMIT 50%

## duckdb
SELECT id, rowid FROM customers

## duckdb
SELECT main.customers.id FROM main.customers

## duckdb
SELECT 1::HUGEINT AS h, 1::UTINYINT AS u, '1'::BLOB AS b, '2024-01-01'::TIMESTAMPTZ AS t, [1, 2]::INTEGER[] AS l, {'a': 1}::STRUCT(a BIGINT) AS s

## duckdb
SELECT id FROM customers WHERE country IN ['DE', 'FR']

## duckdb
SELECT id FROM customers USING SAMPLE 100%

## duckdb
SELECT (t.s).a AS a FROM (SELECT {'a': 1} AS s) AS t

## duckdb
SELECT count() AS n FROM customers

## duckdb
SELECT t FROM (SELECT 1 AS a, 2 AS b) AS t

## duckdb
WITH Mixed AS (SELECT id FROM customers) SELECT id FROM mixed

## trino
SELECT approx_distinct(name) AS a, approx_percentile(score, 0.5) AS p, map_agg(id, name) AS m, max_by(name, score) AS b, count_if(active) AS c, arbitrary(name) AS y FROM customers

## trino
SELECT listagg(name, ', ') WITHIN GROUP (ORDER BY name) AS names FROM customers

## trino
SELECT date_diff('day', DATE '2024-01-01', ordered_on) AS d, date_add('day', 1, ordered_on) AS a, date_format(placed_at, '%Y-%m') AS f, format_datetime(placed_at, 'yyyy') AS g FROM orders

## trino
SELECT from_unixtime(0) AS a, to_unixtime(placed_at) AS b, from_iso8601_date('2024-01-01') AS c, year(ordered_on) AS y, day_of_week(ordered_on) AS w FROM orders

## trino
SELECT placed_at AT TIME ZONE 'UTC' AS u, TIMESTAMP '2024-01-01 00:00:00.123 UTC' AS t, INTERVAL '2' HOUR AS i FROM orders

## trino
SELECT transform(ARRAY[1, 2], x -> x + 1) AS t, filter(ARRAY[1, 2], x -> x > 1) AS f, reduce(ARRAY[1, 2], 0, (s, x) -> s + x, s -> s) AS r, cardinality(tags) AS c, element_at(tags, 1) AS e, tags[1] AS h FROM customers

## trino
SELECT array_join(array_sort(array_distinct(tags)), ',') AS a, contains(tags, 'new') AS c, slice(tags, 1, 2) AS s, sequence(1, 5) AS q FROM customers

## trino
SELECT tag, n FROM customers CROSS JOIN UNNEST(tags) WITH ORDINALITY AS t(tag, n)

## trino
SELECT x FROM UNNEST(ARRAY[1, 2], ARRAY['a', 'b']) AS t(x, y)

## trino
SELECT json_extract_scalar(profile, '$.plan') AS p, json_extract(profile, '$.address') AS a, json_parse('{}') AS j, json_format(JSON '{"a": 1}') AS f FROM customers

## trino
SELECT json_value(profile, 'lax $.plan') AS v, json_query(profile, 'lax $.address') AS q, json_exists(profile, 'lax $.plan') AS e FROM customers

## trino
SELECT regexp_like(name, '^A') AS l, regexp_extract(email, '(.+)@', 1) AS e, regexp_replace(name, 'a', 'b') AS r, split(email, '@')[2] AS d, url_extract_host('http://a.example/x') AS h FROM customers

## trino
SELECT to_hex(sha256(to_utf8(name))) AS h, xxhash64(to_utf8(name)) AS x, from_base64('YQ==') AS b, crc32(to_utf8(name)) AS c FROM customers

## trino
SELECT CAST(ROW(1, 'a') AS ROW(x INTEGER, y VARCHAR)) AS r, TRY_CAST('x' AS INTEGER) AS t, TRY(1 / 0) AS z, typeof(1) AS ty

## trino
SELECT MAP(ARRAY['a'], ARRAY[1]) AS m, map_keys(MAP(ARRAY['a'], ARRAY[1])) AS k, element_at(MAP(ARRAY['a'], ARRAY[1]), 'a') AS e

## trino
SELECT id FROM orders OFFSET 1 ROWS FETCH FIRST 2 ROWS ONLY

## trino
SELECT id FROM iceberg.sales.orders FOR VERSION AS OF 123

## trino
SELECT id FROM iceberg.sales.orders FOR TIMESTAMP AS OF TIMESTAMP '2024-01-01 00:00:00 UTC'

## trino
SELECT id FROM hive.sales.orders TABLESAMPLE BERNOULLI (10)

## trino
SELECT sequential_number FROM TABLE(sequence(start => 1, stop => 10))

## trino
SELECT lag(amount) IGNORE NULLS OVER (ORDER BY id) AS l FROM orders

## trino
SELECT 'Ünï' AS a, U&'\0041' AS b, X'41' AS c, 1.25 AS d, 1e3 AS e

## trino
SELECT year_of_week(ordered_on) AS y, format('%s-%d', name, orders.id) AS f, bitwise_and(5, 3) AS b FROM orders, customers

## trino
SELECT c.id FROM postgres.public.customers c JOIN hive.sales.orders o ON o.customer_id = c.id

## trino
SELECT great_circle_distance(0, 0, 1, 1) AS d, ST_Distance(ST_Point(0, 0), ST_Point(1, 1)) AS s

## trino
WITH t AS (SELECT id FROM customers) SELECT count(*) FROM T

## trino
SELECT histogram(country) AS h, multimap_agg(country, id) AS m, checksum(id) AS c, geometric_mean(score) AS g FROM customers

## trino
TABLE hive.sales.orders

## mysql
SELECT `id`, `name` FROM `shop`.`customers` WHERE `active` = 1

## mysql
SELECT group_concat(DISTINCT name ORDER BY name SEPARATOR '; ') AS names FROM customers

## mysql
SELECT date_format(placed_at, '%Y-%m') AS m, date_add(ordered_on, INTERVAL 1 DAY) AS a, datediff(ordered_on, '2024-01-01') AS d, ordered_on + INTERVAL 1 MONTH AS n FROM orders

## mysql
SELECT timestampdiff(DAY, '2024-01-01', ordered_on) AS d, timestampadd(MONTH, 1, ordered_on) AS a, unix_timestamp(placed_at) AS u, from_unixtime(0) AS f, str_to_date('2024', '%Y') AS s FROM orders

## mysql volatile
SELECT curdate() AS d, curtime() AS t, utc_timestamp() AS u, sysdate() AS s, rand() AS r, uuid() AS i

## mysql
SELECT dayofweek(ordered_on) AS w, weekofyear(ordered_on) AS y, monthname(ordered_on) AS m, last_day(ordered_on) AS l, makedate(2024, 60) AS k FROM orders

## mysql
SELECT IF(active, 'yes', 'no') AS a, ifnull(name, '-') AS n, isnull(name) AS i, elt(1, 'a', 'b') AS e, field('b', 'a', 'b') AS f FROM customers

## mysql
SELECT profile -> '$.plan' AS p, profile ->> '$.address.city' AS c, json_extract(profile, '$.plan') AS e, json_unquote(json_extract(profile, '$.plan')) AS u, json_length(profile) AS l FROM customers

## mysql
SELECT j.a FROM JSON_TABLE('[{"a": 1}]', '$[*]' COLUMNS (a INT PATH '$.a')) AS j

## mysql
SELECT name REGEXP '^A' AS r, name RLIKE 'a$' AS l, name NOT REGEXP 'x' AS n, regexp_like(name, 'a') AS k FROM customers

## mysql
SELECT id <=> 1 AS e, 7 DIV 2 AS d, 7 MOD 2 AS m, TRUE XOR FALSE AS x, 5 & 3 AS a, 5 | 3 AS o, 5 ^ 3 AS c, ~1 AS n, 1 << 2 AS s FROM customers

## mysql
SELECT CAST(id AS SIGNED) AS s, CAST(amount AS DECIMAL(10, 2)) AS d, CONVERT(id, CHAR) AS c, CAST(id AS UNSIGNED) AS u FROM orders

## mysql
SELECT concat('a', "b", 'c''d', 'e\'f', "g\"h") AS c, 'tab\tnew\nline' AS t, 'back\\slash' AS b, N'national' AS n, x'4142' AS h, 0x41 AS i, b'101' AS k

## mysql
SELECT substring_index(email, '@', -1) AS d, instr(email, '@') AS i, locate('@', email) AS l, char_length(name) AS c, mid(name, 1, 2) AS m, insert(name, 1, 2, 'zz') AS s, truncate(1.567, 2) AS t, format(1234.5, 2) AS f FROM customers

## mysql
SELECT country, count(*) AS n FROM customers GROUP BY country WITH ROLLUP

## mysql
SELECT id FROM customers LIMIT 1, 2

## mysql
SELECT MATCH(name) AGAINST ('ann' IN BOOLEAN MODE) AS score FROM customers

## mysql
SELECT sha2(name, 256) AS s, md5(name) AS m, crc32(name) AS c, inet_aton('10.0.0.1') AS i, hex(name) AS h, to_base64(name) AS b FROM customers

## mysql
SELECT id FROM customers USE INDEX (PRIMARY) WHERE id > 1

## mysql
SELECT name AS 'customer name' FROM customers

## mysql
SELECT SQL_NO_CACHE id FROM customers

## mysql
SELECT 1 - -1 AS two, 3--1 AS four

## mysql
SELECT json_arrayagg(id) AS a, json_objectagg(id, name) AS o, std(score) AS s, bit_xor(id) AS b FROM customers

## mysql
SELECT name COLLATE utf8mb4_bin AS n, CONVERT(name USING utf8mb4) AS c, BINARY name AS b FROM customers

## mysql
SELECT /*+ NO_INDEX_MERGE(customers) */ id FROM customers

## mysql
SELECT extract(YEAR_MONTH FROM ordered_on) AS y, week(ordered_on, 3) AS w, time_to_sec('01:00:00') AS s FROM orders

## bigquery
SELECT id, name FROM `my-project.sales.customers`

## bigquery
SELECT id FROM my-project.sales.orders

## bigquery
SELECT id FROM `my-project`.`sales`.`orders` AS o WHERE o.amount > 5

## bigquery
SELECT * EXCEPT (email) FROM sales.customers

## bigquery
SELECT * REPLACE (upper(name) AS name) FROM sales.customers

## bigquery
SELECT DATE_TRUNC(ordered_on, MONTH) AS m, DATE_TRUNC(ordered_on, WEEK(MONDAY)) AS w, TIMESTAMP_TRUNC(placed_at, HOUR) AS h FROM sales.orders

## bigquery
SELECT DATE_ADD(ordered_on, INTERVAL 1 DAY) AS a, DATE_SUB(ordered_on, INTERVAL 2 WEEK) AS s, DATE_DIFF(ordered_on, DATE '2024-01-01', DAY) AS d, TIMESTAMP_DIFF(placed_at, placed_at, SECOND) AS t FROM sales.orders

## bigquery
SELECT FORMAT_DATE('%Y-%m', ordered_on) AS f, PARSE_DATE('%Y', '2024') AS p, FORMAT_TIMESTAMP('%F', placed_at) AS t, EXTRACT(ISOWEEK FROM ordered_on) AS i, LAST_DAY(ordered_on, MONTH) AS l FROM sales.orders

## bigquery volatile
SELECT CURRENT_DATE() AS d, CURRENT_DATE('UTC') AS u, CURRENT_DATETIME() AS t, CURRENT_TIMESTAMP() AS s, GENERATE_UUID() AS g, RAND() AS r

## bigquery
SELECT ARRAY_AGG(name IGNORE NULLS ORDER BY name LIMIT 5) AS a, STRING_AGG(DISTINCT name, ', ') AS s, COUNTIF(active) AS c, APPROX_COUNT_DISTINCT(name) AS d, APPROX_QUANTILES(score, 4)[OFFSET(1)] AS q, ANY_VALUE(name) AS v FROM sales.customers

## bigquery
SELECT id, tag, pos FROM sales.customers, UNNEST(tags) AS tag WITH OFFSET AS pos

## bigquery
SELECT x FROM UNNEST([1, 2, 3]) AS x WHERE x IN UNNEST([1, 2])

## bigquery
SELECT d FROM UNNEST(GENERATE_DATE_ARRAY(DATE '2024-01-01', DATE '2024-01-31', INTERVAL 1 DAY)) AS d

## bigquery
SELECT STRUCT(1 AS a, 'x' AS b) AS s, [1, 2] AS l, ARRAY<INT64>[1] AS t, ARRAY(SELECT 1 UNION ALL SELECT 2) AS q

## bigquery
SELECT tags[OFFSET(0)] AS a, tags[SAFE_OFFSET(1)] AS b, tags[ORDINAL(1)] AS c, ARRAY_LENGTH(tags) AS n, ARRAY_TO_STRING(tags, ',') AS j FROM sales.customers

## bigquery
SELECT JSON_VALUE(profile, '$.plan') AS v, JSON_QUERY(profile, '$.address') AS q, JSON_EXTRACT_SCALAR(profile, '$.plan') AS s, TO_JSON_STRING(tags) AS t, PARSE_JSON('{"a": 1}') AS p FROM sales.customers

## bigquery
SELECT SAFE_CAST(name AS INT64) AS n, SAFE_DIVIDE(1, 0) AS d, SAFE.SUBSTR(name, 1, 2) AS s, IF(active, 1, 0) AS i, IFNULL(name, '-') AS f FROM sales.customers

## bigquery
SELECT REGEXP_CONTAINS(name, r'^A') AS c, REGEXP_EXTRACT(email, r'@(.+)$') AS e, REGEXP_REPLACE(name, r'\d+', '') AS r, SPLIT(email, '@')[OFFSET(1)] AS s, NET.HOST('http://a.example/x') AS h FROM sales.customers

## bigquery
SELECT FARM_FINGERPRINT(name) AS f, TO_HEX(SHA256(name)) AS h, MD5(name) AS m, TO_BASE64(b'abc') AS b FROM sales.customers

## bigquery
SELECT id FROM sales.orders QUALIFY ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY placed_at DESC) = 1

## bigquery
SELECT id FROM sales.orders FOR SYSTEM_TIME AS OF TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 1 HOUR)

## bigquery
SELECT id FROM sales.orders TABLESAMPLE SYSTEM (10 PERCENT)

## bigquery
SELECT * FROM (SELECT status, amount FROM sales.orders) PIVOT (SUM(amount) FOR status IN ('paid', 'sent'))

## bigquery
SELECT id FROM sales.orders UNION DISTINCT SELECT id FROM sales.customers

## bigquery
SELECT id FROM sales.orders EXCEPT DISTINCT SELECT id FROM sales.customers

## bigquery
FROM sales.orders |> WHERE amount > 5 |> SELECT id, amount |> LIMIT 5

## bigquery
SELECT 'a\'b' AS a, "it's" AS b, r'raw\d' AS c, '''triple 'quoted' ''' AS d, """say "hi" """ AS e, 'new\nline' AS f, b'bytes' AS g

## bigquery
SELECT AS STRUCT 1 AS a, 2 AS b

## bigquery
SELECT _PARTITIONTIME AS p, id FROM sales.orders WHERE _PARTITIONDATE >= '2024-01-01'

## bigquery
SELECT HLL_COUNT.MERGE(sketch) AS n FROM (SELECT HLL_COUNT.INIT(name) AS sketch FROM sales.customers)

## bigquery
SELECT CAST(id AS STRING) AS s, CAST('1.5' AS NUMERIC) AS n, CAST('2024-01-01' AS DATE) AS d, DATE '2024-01-01' AS l, TIMESTAMP '2024-01-01 00:00:00+00' AS t, NUMERIC '1.25' AS m FROM sales.customers

## bigquery
SELECT ST_DISTANCE(ST_GEOGPOINT(0, 0), ST_GEOGPOINT(1, 1)) AS d, LOGICAL_AND(active) AS a, SUM(score) AS s FROM sales.customers GROUP BY active

## bigquery
WITH Names AS (SELECT name FROM sales.customers) SELECT name FROM names

## duckdb,postgres
SELECT E'\x27' AS a, E'\047' AS b, E'\\\x27' AS c, E'\x5c' AS d, E'\x5c''' AS e, E'\134' AS f, E'''' AS g

## postgres
SELECT E'\u0027' AS a, U&'\0027' AS b, U&'\005c' AS c, U&'\\' AS d, U&'a''b' AS e, U&'!0027' UESCAPE '!' AS f

## bigquery
SELECT b'\x27 , evil() , \x27' AS a, '\u0027' AS b, '\047' AS c, '\\\'' AS d, r"\'" AS e, r'''a\'''' AS f, b'\x5c' AS g

## mysql
SELECT '\'' AS a, '\\\'' AS b, "\'" AS c, '\\\\' AS d, N'\'' AS e, '\%' AS f, 'a' 'b' AS g

## postgres
SELECT l.x FROM generate_series(1, 3) AS g, LATERAL (SELECT g * 2 AS x) AS l
