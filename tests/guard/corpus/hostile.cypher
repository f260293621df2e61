# writing clauses
CREATE (n:City {name: 'x'})
create (n:City {name: 'x'})
CrEaTe (n:City {name: 'x'})
CREATE (a)-[:KNOWS]->(b)
MATCH (n) CREATE (m:City {name: 'x'})
MATCH (n) CREATE (m:City {name: 'x'}) RETURN m
MATCH (n) RETURN n CREATE (m:City {name: 'x'})
MATCH (n:Person) SET n.name = 'x'
MATCH (n:Person) SET n += {name: 'x'}
MATCH (n:Person) SET n:Admin
MATCH (n:Person) SET n.name = 'x' RETURN n
MATCH (n:Person) WHERE n.id = 1 SET n.name = 'x'
MATCH (n:Person) WITH n SET n.name = 'x'
MATCH (n:Person) WITH n WHERE n.id > 0 SET n.name = 'x' RETURN n
MATCH (n) DELETE n
MATCH (n) DETACH DELETE n
MATCH (n)-[e]->() DELETE e
MATCH (n) NODETACH DELETE n
MATCH (n) REMOVE n.name
MATCH (n) REMOVE n:Person
MERGE (n:City {name: 'x'})
MERGE (n:City {name: 'x'}) ON CREATE SET n.name = 'y'
MATCH (a), (b) MERGE (a)-[:KNOWS]->(b)
MATCH (n) MERGE (m:City {name: n.name}) RETURN m
UNWIND [1, 2] AS x CREATE (:Person {id: x})
UNWIND [1, 2] AS x MERGE (:Person {id: x})
WITH 1 AS x CREATE (:Person {id: x})
WITH * CREATE (n)
MATCH (n) WITH * CREATE (m)
MATCH (n) WITH *, 1 AS x CREATE (m)
MATCH (n) RETURN * CREATE (m)
MATCH (n) RETURN DISTINCT n CREATE (m)
MATCH (n) RETURN n ORDER BY n.name CREATE (m)
MATCH (n) RETURN n ORDER BY n.name DESC CREATE (m)
MATCH (n) RETURN n ORDER BY n.name ASC SET n.x = 1
MATCH (n) RETURN n SKIP 1 CREATE (m)
MATCH (n) RETURN n LIMIT 1 CREATE (m)
MATCH (n) RETURN n LIMIT $x DELETE n
MATCH (n) RETURN count(*) DELETE n
MATCH (n) RETURN n.name AS set DELETE n
MATCH (n) RETURN n.name AS create CREATE (m)
MATCH (n) RETURN n.`name` DELETE n
MATCH (n) WHERE n.name IS NULL DELETE n
MATCH (n) WHERE n.name IS NOT NULL DELETE n
MATCH (n) WHERE n.name STARTS WITH 'x' DELETE n
MATCH (n) WHERE n.id IN [1, 2] DELETE n
MATCH (n) WHERE true DELETE n
MATCH (n) WHERE n.set DELETE n
MATCH (n) WHERE NOT n.x DELETE n
RETURN 1 CREATE (n)
RETURN 'x' CREATE (n)
RETURN "x" CREATE (n)
RETURN $x CREATE (n)
RETURN [1] CREATE (n)
RETURN {a: 1} CREATE (n)
RETURN true CREATE (n)
RETURN null CREATE (n)
RETURN 1.5e3 CREATE (n)
RETURN x.y CREATE (n)
RETURN x.y.z CREATE (n)
RETURN CASE WHEN true THEN 1 END CREATE (n)
RETURN CASE x WHEN 1 THEN 2 ELSE 3 END CREATE (n)
RETURN distinct CREATE (n)
RETURN not CREATE (n)
RETURN case CREATE (n)
RETURN 1 AS case CREATE (n)
RETURN 1 AS not CREATE (n)
RETURN 1 AS distinct CREATE (n)
RETURN 1 AS and CREATE (n)
RETURN and CREATE (n)
RETURN in CREATE (n)
RETURN order CREATE (n)
RETURN limit CREATE (n)
RETURN match CREATE (n)
RETURN 1 UNION CREATE (n) RETURN 1
RETURN 1 UNION ALL CREATE (n) RETURN 1
MATCH (n) RETURN n UNION MATCH (m) DELETE m
MATCH (n) FOREACH (x IN [1] | CREATE (m))
FOREACH (x IN [1] | CREATE (m))
MATCH p = (a)-[*]->(b) FOREACH (n IN nodes(p) | SET n.x = 1)
# subqueries
MATCH (n) WHERE EXISTS { CREATE (m) } RETURN n
MATCH (n) WHERE EXISTS { MATCH (n) SET n.x = 1 } RETURN n
MATCH (n) WHERE EXISTS { MATCH (n) DELETE n } RETURN n
MATCH (n) RETURN COUNT { CREATE (m) }
MATCH (n) RETURN COUNT { MATCH (m) DELETE m }
MATCH (n) CALL { CREATE (m) } RETURN n
MATCH (n) CALL { WITH n SET n.x = 1 } RETURN n
CALL { CREATE (n) RETURN n } RETURN n
CALL (n) { SET n.x = 1 }
MATCH (n) CALL { WITH n DELETE n } IN TRANSACTIONS OF 10 ROWS
# definition
CREATE NODE TABLE X(id INT64, PRIMARY KEY(id))
CREATE NODE TABLE IF NOT EXISTS X(id INT64, PRIMARY KEY(id))
CREATE REL TABLE X(FROM Person TO Person)
CREATE SEQUENCE s
CREATE MACRO f(x) AS x + 1
CREATE TYPE t AS INT64
CREATE GRAPH g
CREATE INDEX FOR (n:Person) ON (n.name)
CREATE CONSTRAINT FOR (n:Person) REQUIRE n.id IS UNIQUE
DROP TABLE Person
DROP TABLE IF EXISTS Person
DROP SEQUENCE s
DROP INDEX i
DROP GRAPH g
ALTER TABLE Person ADD x INT64
ALTER TABLE Person DROP name
ALTER TABLE Person RENAME TO Human
ALTER TABLE Person RENAME name TO nom
COMMENT ON TABLE Person IS 'x'
MATCH (n) DROP TABLE Person
# files and network
LOAD FROM '/etc/passwd' RETURN *
load from '/etc/passwd' return *
LOAD FROM "/etc/passwd" RETURN *
LOAD FROM '/etc/passwd' (header=false) RETURN *
LOAD WITH HEADERS (a STRING) FROM '/etc/passwd' RETURN *
LOAD FROM 'http://169.254.169.254/latest/meta-data' RETURN *
LOAD FROM 's3://bucket/x.parquet' RETURN *
LOAD FROM $df RETURN *
LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line
LOAD CSV WITH HEADERS FROM 'http://x/y.csv' AS line CREATE (n)
USING PERIODIC COMMIT LOAD CSV FROM 'file:///x' AS l RETURN l
MATCH (n) LOAD FROM '/etc/passwd' RETURN *
COPY Person FROM '/tmp/x.parquet'
COPY Person TO '/tmp/x.csv'
COPY (MATCH (n) RETURN n.id) TO '/tmp/x.csv'
COPY (MATCH (n) RETURN n.id) TO '/tmp/x.parquet'
EXPORT DATABASE '/tmp/x'
EXPORT DATABASE '/tmp/x' (format='csv')
IMPORT DATABASE '/tmp/x'
ATTACH '/tmp/other.db' AS other (dbtype lbug)
ATTACH 'dbname=x host=y' AS pg (dbtype postgres)
DETACH other
USE other
USE GRAPH other
INSTALL httpfs
LOAD httpfs
LOAD EXTENSION httpfs
LOAD EXTENSION '/tmp/x.so'
INSTALL EXTENSION httpfs
UNINSTALL httpfs
UPDATE httpfs
FORCE INSTALL httpfs
EXTENSION httpfs
# settings, transactions, procedures
CALL threads = 1
CALL timeout = 0
CALL home_directory = '/tmp'
CALL checkpoint_threshold = 0
CALL s3_secret_access_key = 'x'
CALL enable_multi_writes = true
CALL project_graph('g', ['Person'], ['KNOWS'])
CALL drop_projected_graph('g')
CALL create_fts_index('Person', 'i', ['name'])
CALL read_csv_serial('/etc/passwd') RETURN *
CALL READ_PARQUET('/etc/passwd') RETURN *
CALL read_npy('/etc/passwd') RETURN *
CALL clear_warnings()
CALL show_attached_databases() RETURN *
CALL current_setting('home_directory') RETURN *
CALL file_info() RETURN *
CALL _cache_array_column_locally('Person', 'name')
CALL apoc.load.json('http://x') YIELD value RETURN value
CALL dbms.security.listUsers()
CALL db.idx.fulltext.createNodeIndex('Person', 'name')
CALL db.create.setNodeProperty(1, 'x', 2)
CALL `show_tables`() RETURN *
CALL db.`labels`() YIELD label RETURN label
CALL show_tables
CALL
CALL 1
BEGIN TRANSACTION
BEGIN TRANSACTION READ ONLY
COMMIT
ROLLBACK
CHECKPOINT
ANALYZE
SET x = 1
SHOW TABLES
PROFILE CREATE (n)
EXPLAIN CREATE (n)
EXPLAIN LOAD FROM '/etc/passwd' RETURN *
EXPLAIN EXPLAIN CREATE (n)
PROFILE MATCH (n) DELETE n
RETURN nextval('s')
RETURN NextVal('s')
RETURN setseed(0.5)
MATCH (n) WHERE n.id = nextval('s') RETURN n
# more than one statement
RETURN 1; CREATE (n)
RETURN 1; RETURN 2
RETURN 1;; CREATE (n)
; CREATE (n)
MATCH (n) RETURN n; DROP TABLE Person;
RETURN 1;/* */CREATE (n)
RETURN 1;//\nCREATE (n)
# comments and quotes as a hiding place
/* MATCH (n) RETURN n */ CREATE (n)
// MATCH (n) RETURN n\nCREATE (n)
MATCH (n) /* */ SET /* */ n.x = 1
MATCH (n)/**/SET n.x=1
MATCH (n)//\nDELETE n
MATCH (n) RETURN n/*'*/DELETE n/*'*/
MATCH (n) RETURN '/*' DELETE n //*/
RETURN '//' CREATE (n)
RETURN '\\'' CREATE (n) RETURN '\\''
RETURN "'" CREATE (n) RETURN "'"
RETURN '"' CREATE (n) RETURN '"'
RETURN `'` CREATE (n) RETURN `'`
RETURN 'a' 'b' CREATE (n)
MATCH (n) RETURN n . name CREATE (m)
MATCH (n) RETURN n.\nname\nCREATE\n(m)
MATCH(n)SET n.x=1
MATCH (n)DELETE n
MATCH (n) RETURN(n)CREATE(m)
RETURN[1]CREATE(n)
RETURN 1CREATE (n)
RETURN-1 CREATE (n)
RETURN 1\tCREATE\t(n)
RETURN 1\r\nCREATE (n)
RETURN 1\xa0CREATE (n)
RETURN 1\u3000CREATE (n)
RETURN 1\u2003SET n.x = 1

# what two lexers could read differently
RETURN 'open
RETURN "open
RETURN `open
RETURN /* open
RETURN `a``b` CREATE (n)
RETURN 'a\\qb'
RETURN 'a\\x27 CREATE (n) //'
RETURN 'a\\u0027 CREATE (n) //'
RETURN 'a\\\nb'
RETURN ``
RETURN 1\x00CREATE (n)
RETURN 1\x0bCREATE (n)
RETURN 1\x85CREATE (n)
RETURN 1\u2028CREATE (n)
RETURN 1\ufeffCREATE (n)
RETURN (1
RETURN 1)
RETURN [1)
RETURN {a: 1
RETURN #1
RETURN 1 ? 2
RETURN \u212aey
MATCH (n) \u017fET n.x = 1

;
