"""Find accounts that pass large sums in a circle: a graph of the demo warehouse, one algorithm, one
question."""

import penstock

with penstock.connect() as ps:
    mapping = next(ps.mappings.list(search="Fraud rings"))
    with mapping.start(ttl="1h") as g:
        g.algo.scc(node_label="Account", edge_type="SENT_MUCH", write="ring")
        rings = g.query(
            """
            MATCH (p:Person)-[:OWNS]->(a:Account)
            WITH a.ring AS ring, collect(p.name) AS people, count(a) AS accounts
            WHERE accounts >= 3
            RETURN accounts, people ORDER BY accounts DESC
            """
        )
        rings.show()
        biggest = g.query(
            "MATCH (a:Account)-[t:SENT_MUCH]->(b:Account) RETURN a, t, b LIMIT 100"
        ).to_networkx()
        print(
            f"{biggest.number_of_nodes()} accounts and {biggest.number_of_edges()} large "
            "transfers as a NetworkX graph"
        )
