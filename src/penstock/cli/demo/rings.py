"""Act two of the demo: the bank's tables become a graph, and the graph gives up its rings.

Large transfers among accounts are edges of their own; accounts that can all reach each other over them pass money in a
circle. That is one algorithm (strongly connected components), and one question about what it found.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from penstock.cli.output import out
from penstock.client import edge, node

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from penstock.client import Client
    from penstock.client._sync.instances import Graph

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
    edge("USES", ("Person", "Device"), "SELECT person_id, device_id FROM logins", ("person_id", "device_id")),
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
        "SELECT from_account, to_account, CAST(sum(amount) AS DOUBLE) AS amount, count(*) AS times FROM transfers"
        f" WHERE amount >= {LARGE} GROUP BY from_account, to_account",
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
PASSED = "MATCH (a:Account)-[t:SENT_MUCH]->(b:Account) WHERE a.ring = $ring AND b.ring = $ring RETURN sum(t.amount)"
SHARED = """
MATCH (a:Account)<-[:OWNS]-(p:Person)-[:USES]->(d:Device)
WHERE a.ring = $ring
WITH d, count(DISTINCT p) AS people
WHERE people >= $least
RETURN d.kind, people ORDER BY people DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    accounts: int
    people: list[str]
    passed: float
    device: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rings:
    found: list[Ring]
    nodes: int
    edges: int
    seconds_to_graph: float

    @property
    def good(self) -> bool:
        return sorted(ring.accounts for ring in self.found) == PLANTED


def prepare(ps: Client, warehouse: Path) -> int:
    """The warehouse as a data source and the bank as a mapping; returns the mapping's id."""
    source = ps.sources.create("demo", "duckdb", {"database": str(warehouse)})
    mapping = ps.mappings.create(
        "Fraud rings", nodes=NODES, edges=EDGES, data_source=source.id, description="People, accounts and their money."
    )
    return mapping.id


def find(ps: Client, mapping_id: int, say: Callable[[str], None], *, quiet: bool) -> Rings:
    started = time.monotonic()
    with ps.mappings.get(mapping_id).start("demo", ttl="1h", progress=not quiet) as graph:
        seconds = time.monotonic() - started
        size = graph.schema()
        say(f"{size['total_nodes']:,} nodes and {size['total_edges']:,} edges in a graph after {seconds:.1f} s")
        graph.algo.scc(node_label="Account", edge_type="SENT_MUCH", write="ring", progress=not quiet)
        found = [_ring(graph, row) for row in graph.query(RINGS, {"least": SMALLEST_RING})]
    return Rings(found=found, nodes=size["total_nodes"], edges=size["total_edges"], seconds_to_graph=seconds)


def show(rings: Rings) -> None:
    table = Table(title="Accounts that pass money in a circle", box=None, header_style="bold", title_justify="left")
    for heading in ("accounts", "passed around", "shared", "people"):
        table.add_column(heading, justify="right" if heading in ("accounts", "passed around") else "left")
    for ring in rings.found:
        table.add_row(str(ring.accounts), f"{ring.passed:,.2f}", ring.device or "", Text(", ".join(ring.people)))
    out.print(table)
    out.print(
        f"\n[green]✓[/green] [bold]{len(rings.found)}[/bold] rings in {rings.nodes:,} nodes and {rings.edges:,} edges;"
        f" from tables to a running graph in {rings.seconds_to_graph:.1f} s."
    )


def document(rings: Rings) -> dict[str, Any]:
    return asdict(rings) | {"ok": rings.good}


def _ring(graph: Graph, row: dict[str, Any]) -> Ring:
    passed = graph.query(PASSED, {"ring": row["ring"]}).scalar()
    shared = graph.query(SHARED, {"ring": row["ring"], "least": SMALLEST_RING}).to_dicts()
    device = f"one {shared[0]['d.kind']} used by {shared[0]['people']}" if shared else None
    return Ring(accounts=row["accounts"], people=sorted(row["people"]), passed=passed, device=device)
