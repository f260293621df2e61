MATCH (n) RETURN n
match (n) return n
MATCH (n:Person) RETURN n LIMIT 10
MATCH (n:Person) RETURN n.name, n.id ORDER BY n.name DESC SKIP 1 LIMIT 5
MATCH (n:Person) WHERE n.id = 1 RETURN n;
MATCH (n:Person {id: 1}) RETURN n.name AS name
MATCH (n:Person) WHERE n.name = 'CREATE (m)' RETURN n
MATCH (n:Person) WHERE n.name = "DELETE n; DROP TABLE Person" RETURN n
MATCH (n:Person) WHERE n.name CONTAINS 'Reset' RETURN n
MATCH (n:Person) WHERE n.name STARTS WITH 'set' AND n.name ENDS WITH 'x' RETURN n
MATCH (n:Person) WHERE n.set RETURN n.set
MATCH (n:Person) RETURN n.set AS `create`, n.`set` AS `delete`
MATCH (n:Person) WHERE n.score > 1.5 OR n.score < -2e3 XOR n.set RETURN count(*)
MATCH (n:Person) WHERE NOT n.set RETURN n
MATCH (n:Person) WHERE n.name IS NULL RETURN n
MATCH (n:Person) WHERE n.name IS NOT NULL AND NOT n.name IN ['a', 'b'] RETURN n
MATCH (n:Person) WHERE n.name =~ 'A.*' RETURN n
MATCH (a:Person)-[e:KNOWS]->(b:Person) RETURN a, e, b
MATCH (a:Person)<-[e:KNOWS]-(b:Person) RETURN a.id, b.id
MATCH (a:Person)-[e:KNOWS]-(b:Person) RETURN a.id, b.id
MATCH (a)-[e]->(b) RETURN label(a), label(e), label(b)
MATCH (a)-[:KNOWS|LIVES_IN]->(b) RETURN b
MATCH (a)-[:KNOWS|:LIVES_IN]->(b) RETURN b
MATCH (a)-->(b) RETURN b
MATCH (a)--(b) RETURN count(*)
MATCH (a)<--(b) RETURN b
MATCH (a:Person:City) RETURN a
MATCH (a:Person)-[e:KNOWS*1..3]->(b) RETURN b
MATCH (a:Person)-[e:KNOWS*]->(b) RETURN length(e)
MATCH (a:Person)-[:KNOWS*2]->(b) RETURN b
MATCH (a:Person)-[e:KNOWS* SHORTEST 1..5]->(b) RETURN length(e)
MATCH (a:Person)-[e:KNOWS* ALL SHORTEST 1..5]->(b) RETURN length(e)
MATCH (a:Person)-[e:KNOWS* TRAIL 1..3]->(b) RETURN count(*)
MATCH (a:Person)-[e:KNOWS* ACYCLIC 1..3]->(b) RETURN count(*)
MATCH (a:Person)-[e:KNOWS*1..2 (r, n | WHERE r.weight > 0.1)]->(b) RETURN b
MATCH p = (a:Person)-[:KNOWS*1..3]->(b) RETURN p, nodes(p), rels(p), length(p)
MATCH p = (a)-[e]->(b) WHERE is_trail(p) RETURN p
MATCH (a:Person), (b:City) RETURN a.id, b.name
MATCH (a:Person) MATCH (b:City) RETURN a.id, b.name
MATCH (a:Person) OPTIONAL MATCH (a)-[:LIVES_IN]->(c) RETURN a.id, c.name
OPTIONAL MATCH (n:Person {id: 99}) RETURN n
MATCH (n:Person) WITH n.name AS name, count(*) AS c WHERE c > 0 RETURN name, c
MATCH (n:Person) WITH n ORDER BY n.id LIMIT 1 RETURN n
MATCH (n:Person) WITH DISTINCT n.name AS name RETURN name
MATCH (n:Person) WITH * RETURN *
MATCH (n:Person) WITH *, 1 AS one RETURN n.id, one
MATCH (n:Person) RETURN DISTINCT n.name
MATCH (n:Person) RETURN count(DISTINCT n.name)
MATCH (n:Person) RETURN *
UNWIND [1, 2, 3] AS x RETURN x
UNWIND range(1, 10) AS x WITH x WHERE x % 2 = 0 RETURN sum(x), avg(x), min(x), max(x), collect(x)
UNWIND [[1, 2], [3]] AS xs UNWIND xs AS x RETURN x
RETURN 1
RETURN 1;
RETURN 1 AS load
RETURN 1 AS copy, 2 AS export, 3 AS attach
RETURN 1 + 2 * 3 - 4 / 2 % 3 ^ 2
RETURN -1, 1.5, .5, 1e3, 1.5e-3
RETURN 'a', "b", 'it\\'s', "a \\"b\\"", 'tab\\t'
RETURN true, false, null
RETURN [1, 2, 3][1], [1, 2, 3][1:2]
RETURN {a: 1, b: 'x'}.a
RETURN {set: 1, delete: 2, load: 3}
RETURN map(['create'], [1])
RETURN CASE WHEN 1 = 1 THEN 'yes' ELSE 'no' END AS answer
RETURN CASE 1 WHEN 1 THEN 'one' WHEN 2 THEN 'two' END
RETURN CASE WHEN NOT false THEN 1 ELSE 2 END
RETURN NOT true AND false OR true XOR false
RETURN NOT NOT true
RETURN date('2026-01-01'), timestamp('2026-01-01 00:00:00'), interval('3 days')
RETURN CAST(1 AS STRING), CAST('1' AS INT64), CAST('[1]' AS INT64[])
RETURN coalesce(null, 1), ifnull(null, 2), nullif(1, 1)
RETURN list_transform([1, 2, 3], x -> x + 1)
RETURN list_filter([1, 2, 3], x -> x > 1)
RETURN size([1, 2]), size('abc'), upper('a'), lower('B'), trim(' a ')
RETURN list_contains([1, 2], 1), [1, 2] = [1, 2], 1 <> 2, 1 <= 2, 2 >= 1
RETURN $x
RETURN $x + 1 AS y
RETURN [$x, $x], $y
MATCH (n:Person {id: $x}) RETURN n
MATCH (n:Person) WHERE n.id IN $y RETURN n LIMIT $z
MATCH (n:Person) WHERE EXISTS { MATCH (n)-[:KNOWS]->(m) } RETURN n
MATCH (n:Person) WHERE EXISTS { MATCH (n)-[:KNOWS]->(m) WHERE m.id > 0 } RETURN n
MATCH (n:Person) WHERE NOT EXISTS { MATCH (n)-[:LIVES_IN]->(:City) } RETURN n
MATCH (n:Person) RETURN n.id, COUNT { MATCH (n)-[:KNOWS]->() } AS friends
MATCH (n:Person) WHERE (n)-[:KNOWS]->(:Person {id: 2}) RETURN n
MATCH (n:Person) WHERE all(x IN n.tags WHERE x <> 'DROP') RETURN n
MATCH (n:Person) WHERE any(x IN n.tags WHERE x = 'a') RETURN n
MATCH (n:Person) RETURN n.id AS id UNION MATCH (m:Person) RETURN m.id AS id
MATCH (n:Person) RETURN n.id AS id UNION ALL MATCH (m:Person) RETURN m.id AS id
RETURN 1 AS x UNION RETURN 2 AS x
CALL show_tables() RETURN *
CALL show_tables() RETURN name, type
CALL table_info('Person') RETURN *
CALL table_info('Person') WHERE name = 'id' RETURN type
CALL show_connection('KNOWS') RETURN *
CALL db_version() RETURN *
CALL show_functions() RETURN count(*)
EXPLAIN MATCH (n) RETURN n
PROFILE MATCH (n:Person) RETURN count(*)
// a comment with CREATE (n)\nMATCH (n) RETURN n
MATCH (n) /* DELETE n */ RETURN n
MATCH (n) // SET n.x = 1\nRETURN n
MATCH (n)\n  WHERE n.id = 1\n  RETURN n\n  ORDER BY n.id\n
/* one */ /* two */ RETURN 1 // three
MATCH (`create`:Person) RETURN `create`
MATCH (n:`Person`)-[`set`:`KNOWS`]->(m) RETURN `set`
MATCH (load:Person) RETURN load.id
MATCH (copy:Person)-[use:KNOWS]->(begin:Person) WHERE copy.id = 1 RETURN use.weight, begin.id ORDER BY begin.id
MATCH (export:Person) WITH export AS import RETURN import.id
MATCH (n:Person) RETURN n.id AS comment ORDER BY comment
MATCH (n:Person) RETURN n.id AS offset ORDER BY offset LIMIT 3
MATCH (n:Person) WHERE n.born > date('1800-01-01') RETURN n.born
MATCH (n:Person) RETURN n.home.city, n.facts, n.tags[1]
MATCH (n:Person) RETURN label(n), id(n), n.uid
MATCH (é:Person) RETURN é.id AS größe
MATCH (n:Person) RETURN properties(n)
MATCH (a:Person)-[e:KNOWS {weight: 0.5}]->(b) RETURN b.id
MATCH (n:Person) WHERE n.id + 1 > 2 AND (n.name = 'a' OR (n.name = 'b' AND n.set)) RETURN n
MATCH (a:Person)-[e]->(b), (b)-[f]->(c) RETURN a.id, c
MATCH (n:Person) RETURN sum(CASE WHEN n.set THEN 1 ELSE 0 END) AS s
MATCH (n:Person) RETURN max(n.id) - min(n.id), avg(n.score)
MATCH (n:Person) RETURN n.name + ' DELETE ' + 'x'
MATCH (n) RETURN label(n) AS l, count(*) AS c ORDER BY c DESC, l ASC
