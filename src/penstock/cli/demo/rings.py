"""Act two of the demo: the bank's tables become a graph, and the graph gives up its rings.

Large transfers among accounts are edges of their own; accounts that can all reach each other over
them pass money in a circle. That is one algorithm (strongly connected components), and one question
about what it found.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from penstock.cli.output import out
from penstock.cli.tabular import table
from penstock.client import edge, node

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.client import Client
    from penstock.client._sync.instances import Graph
    from penstock.client.graph_shapes import Element

MAPPING = "Fraud rings"
LARGE = 9000
SMALLEST_RING = 3
PLANTED = [5, 6, 8]
"""How many accounts the rings of the demo warehouse have."""
NODES = (
    node(
        "Person",
        "SELECT id, name, city, joined FROM people",
        "id",
        "INT64",
        name="STRING",
        city="STRING",
        joined="DATE",
    ),
    node(
        "Account",
        "SELECT id, iban, CAST(balance AS DOUBLE) AS balance FROM accounts",
        "id",
        "INT64",
        iban="STRING",
        balance="DOUBLE",
    ),
    node("Device", "SELECT id, kind FROM devices", "id", "INT64", kind="STRING"),
)
EDGES = (
    edge("OWNS", ("Person", "Account"), "SELECT owner_id, id FROM accounts", ("owner_id", "id")),
    edge(
        "USES",
        ("Person", "Device"),
        "SELECT person_id, device_id FROM logins",
        ("person_id", "device_id"),
    ),
    edge(
        "TRANSFERRED",
        ("Account", "Account"),
        "SELECT from_account, to_account, CAST(amount AS DOUBLE) AS amount, made_at FROM transfers",
        ("from_account", "to_account"),
        amount="DOUBLE",
        made_at="TIMESTAMP",
    ),
    edge(
        "SENT_MUCH",
        ("Account", "Account"),
        "SELECT from_account, to_account, CAST(sum(amount) AS DOUBLE) AS amount, count(*) AS "
        f"times FROM transfers WHERE amount >= {LARGE} GROUP BY from_account, to_account",
        ("from_account", "to_account"),
        amount="DOUBLE",
        times="INT64",
    ),
)
RINGS = """
MATCH (p:Person)-[:OWNS]->(a:Account)
WITH a.ring AS ring, collect(p.name) AS people, count(a) AS accounts
WHERE accounts >= $least
RETURN ring, accounts, people ORDER BY accounts DESC
"""
MONEY = (
    "MATCH (a:Account)-[t:SENT_MUCH]->(b:Account) WHERE a.ring = $ring AND b.ring = $ring RETURN "
    "a, t, b"
)
OWNERS = "MATCH (p:Person)-[o:OWNS]->(a:Account) WHERE a.ring = $ring RETURN p, o, a"
SHARED = """
MATCH (a:Account)<-[:OWNS]-(p:Person)-[:USES]->(d:Device)
WHERE a.ring = $ring
WITH d.id AS id, d.kind AS kind, count(DISTINCT p) AS people
WHERE people >= $least
RETURN id, kind, people ORDER BY people DESC LIMIT 1
"""
USERS = """
MATCH (a:Account)<-[:OWNS]-(p:Person)-[u:USES]->(d:Device)
WHERE a.ring = $ring AND d.id = $device
RETURN p, u, d
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    accounts: int
    people: list[str]
    passed: float
    device: str | None
    nodes: dict[str, Element]
    edges: dict[str, Element]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rings:
    found: list[Ring]
    nodes: int
    edges: int
    seconds_to_graph: float

    @property
    def good(self) -> bool:
        return sorted(ring.accounts for ring in self.found) == PLANTED


def prepare(ps: Client, source_id: int) -> int:
    """The bank as a mapping, made where there is none; returns its id."""
    mapping_id = next(
        (mapping.id for mapping in ps.mappings.list(search=MAPPING) if mapping.name == MAPPING),
        None,
    )
    return (
        mapping_id
        or ps.mappings.create(
            MAPPING,
            nodes=NODES,
            edges=EDGES,
            data_source=source_id,
            description="People, accounts and their money.",
        ).id
    )


def find(ps: Client, mapping_id: int, say: Callable[[str], None], *, quiet: bool) -> Rings:
    started = time.monotonic()
    with ps.mappings.get(mapping_id).start("demo", ttl="1h", progress=not quiet) as graph:
        seconds = time.monotonic() - started
        size = graph.schema()
        say(
            f"{size['total_nodes']:,} nodes and {size['total_edges']:,} edges in a graph after "
            f"{seconds:.1f} s"
        )
        graph.algo.scc(
            node_label="Account", edge_type="SENT_MUCH", write="ring", progress=not quiet
        )
        rings = [_ring(graph, row) for row in graph.query(RINGS, {"least": SMALLEST_RING})]
    return Rings(
        found=rings, nodes=size["total_nodes"], edges=size["total_edges"], seconds_to_graph=seconds
    )


def show(rings: Rings) -> None:
    drawn = table(
        "accounts",
        "passed around",
        "shared",
        "people",
        right=("accounts", "passed around"),
        title="Accounts that pass money in a circle",
    )
    for ring in rings.found:
        drawn.add_row(
            str(ring.accounts),
            f"{ring.passed:,.2f}",
            ring.device or "",
            Text(", ".join(ring.people)),
        )
    out.print(drawn)
    out.print(
        f"\n[green]✓[/green] [bold]{len(rings.found)}[/bold] rings in {rings.nodes:,} nodes and "
        f"{rings.edges:,} edges; from tables to a running graph in {rings.seconds_to_graph:.1f} "
        "s."
    )


def document(rings: Rings) -> dict[str, object]:
    documents = [
        {key: value for key, value in asdict(ring).items() if key not in ("nodes", "edges")}
        for ring in rings.found
    ]
    return {
        "found": documents,
        "nodes": rings.nodes,
        "edges": rings.edges,
        "seconds_to_graph": rings.seconds_to_graph,
        "ok": rings.good,
    }


def _ring(graph: Graph, row: Element) -> Ring:
    ring = {"ring": row["ring"]}
    money, owners = graph.query(MONEY, ring), graph.query(OWNERS, ring)
    drawn = [money, owners]
    shared = graph.query(SHARED, ring | {"least": SMALLEST_RING}).to_dicts()
    if shared:
        drawn.append(graph.query(USERS, ring | {"device": shared[0]["id"]}))
    return Ring(
        accounts=row["accounts"],
        people=sorted(row["people"]),
        passed=sum(transfer["amount"] for transfer in money.column("t")),
        device=f"one {shared[0]['kind']} used by {shared[0]['people']}" if shared else None,
        nodes={key: node for result in drawn for key, node in result.nodes().items()},
        edges={key: edge for result in drawn for key, edge in result.edges().items()},
    )
