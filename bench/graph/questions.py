"""The benchmark queries in Cypher and SQL: three, four and six edges from one supplier."""

from __future__ import annotations

_TO_CUSTOMER = (
    "MATCH (s:Supplier {key: $k})-[:SUPPLIED]->(:Lineitem)-[:PART_OF]->(:Orders)"
    "-[:PLACED_BY]->(c:Customer)"
)
CYPHER = {
    "3_hops": f"{_TO_CUSTOMER} RETURN count(DISTINCT c.key) AS n",
    "4_hops": f"{_TO_CUSTOMER}-[:LIVES_IN]->(n:Nation)"
    " RETURN n.name AS name, count(*) AS n ORDER BY name",
    "6_hops": f"{_TO_CUSTOMER}<-[:PLACED_BY]-(:Orders)<-[:PART_OF]-(:Lineitem)"
    "<-[:SUPPLIED]-(o:Supplier) RETURN count(DISTINCT o.key) AS n",
}
SQL = {
    "3_hops": "SELECT count(DISTINCT o_custkey) AS n"
    " FROM lineitem JOIN orders ON l_orderkey = o_orderkey WHERE l_suppkey = {k}",
    "4_hops": "SELECT n_name AS name, count(*) AS n"
    " FROM lineitem JOIN orders ON l_orderkey = o_orderkey"
    " JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey"
    " WHERE l_suppkey = {k} GROUP BY n_name ORDER BY n_name",
    "6_hops": "SELECT count(DISTINCT b.l_suppkey) AS n"
    " FROM lineitem a JOIN orders x ON a.l_orderkey = x.o_orderkey"
    " JOIN orders y ON x.o_custkey = y.o_custkey JOIN lineitem b ON b.l_orderkey = y.o_orderkey"
    " WHERE a.l_suppkey = {k}",
}
POINT = "MATCH (c:Customer {key: $k}) RETURN c.name AS name"
SCAN = "MATCH (l:Lineitem) RETURN l.key AS key, l.quantity AS quantity"
SUPPLIERS = (1, 3, 5, 7, 11)
"""Keys that exist at every scale."""
