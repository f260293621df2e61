from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kit.security_headers import DEFAULTS
from tests.graph_server.conftest import BIG

if TYPE_CHECKING:
    from tests.graph_server.server import GraphServer


async def test_a_snapshot_is_served_with_the_counts_of_its_manifest(server: GraphServer) -> None:
    outcome = await server.plane.outcome()
    assert outcome["graph_stats"] == {"node_count": 5, "edge_count": 4}
    assert (await server.rows("MATCH (n) RETURN count(*)")) == [[5]]
    assert (await server.http.get("/ready")).status_code == 200


async def test_a_node_is_its_label_key_and_own_properties(server: GraphServer) -> None:
    answer = (
        await server.query(
            "MATCH (n) WHERE n.id = 1 OR n.name = 'London' RETURN n ORDER BY label(n)"
        )
    ).json()
    assert answer["column_types"] == ["NODE"]
    (city,), (person,) = answer["rows"]
    assert city == {"_id": "City:London", "_label": "City", "name": "London"}
    assert person == {
        "_id": "Person:1",
        "_label": "Person",
        "id": 1,
        "name": "Ada",
        "set": True,
        "born": "1815-12-10",
        "seen": "2026-01-02T03:04:05.678000Z",
        "score": 1.5,
        "photo": "AP8=",
        "tags": ["a", None],
        "facts": {"k": 1},
        "home": {"city": "London", "no": 12},
        "uid": "00000000-0000-0000-0000-000000000001",
    }


async def test_an_edge_names_its_endpoints(server: GraphServer) -> None:
    [[edge]] = await server.rows("MATCH (a:Person)-[e:LIVES_IN]->(c:City) WHERE a.id = 2 RETURN e")
    assert edge.pop("_id").startswith("LIVES_IN:")
    assert edge == {"_type": "LIVES_IN", "_src": "Person:2", "_dst": "City:Żółw"}


async def test_big_integers_and_parameters_are_exact(server: GraphServer) -> None:
    rows = await server.rows(
        "MATCH (n:Person {id: $id}) RETURN n.id, $id + 1", parameters={"id": BIG}
    )
    assert rows == [[BIG, BIG + 1]]


async def test_every_answer_tells_browsers_what_they_may_not_do_with_it(
    server: GraphServer,
) -> None:
    answers = [
        await server.query("RETURN 1"),
        await server.query("CREATE (n:Person)"),
        await server.http.post(
            "/query", content=b"{", headers={"Content-Type": "application/json"}
        ),
        await server.http.get("/health", headers={"Authorization": ""}),
        await server.http.get("/status"),
        await server.http.get("/no/such/page"),
        await server.http.delete("/query"),
        await server.http.get("/status", headers={"Authorization": "Bearer nobody's"}),
    ]
    assert {answer.status_code // 100 for answer in answers} == {2, 4}
    for answer in answers:
        assert {name.decode(): value.decode() for name, value in DEFAULTS}.items() <= dict(
            answer.headers
        ).items()
