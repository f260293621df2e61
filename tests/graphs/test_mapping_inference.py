"""Mappings proposed from schemas: real ones of PostgreSQL and DuckDB, exported as they were
proposed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from penstock.accounts.role import Role
from penstock.accounts.shares import EVERYBODY, Resource
from penstock.graphs.mappings.catalog import Scope
from penstock.graphs.mappings.naming import (
    UniqueNames,
    edge_type,
    label,
    property_name,
    role,
    singular,
)
from penstock.graphs.mappings.rules import check
from penstock.graphs.mappings.service import Author, Draft
from penstock.kit.errors import InvalidInput, NotFound, PermissionDenied
from tests.graphs.deployment import connected, postgres, postgres_secrets

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.graphs.mappings.inference import Inferred
    from tests.graphs.deployment import Deployment

ME = Author(username="me", role=Role.ANALYST)
SHOP = """
CREATE TABLE {s}customers (
  customer_id INTEGER PRIMARY KEY, "Full Name" VARCHAR, "order" VARCHAR, born DATE);
CREATE TABLE {s}categories (
  id BIGINT PRIMARY KEY, parent_id BIGINT REFERENCES {s}categories (id), name VARCHAR UNIQUE);
CREATE TABLE {s}products (
  sku VARCHAR PRIMARY KEY, category VARCHAR REFERENCES {s}categories (name), price DECIMAL(12, 2));
CREATE TABLE {s}orders (
  id BIGINT PRIMARY KEY, buyer INTEGER REFERENCES {s}customers (customer_id), placed TIMESTAMP,
  gift BOOLEAN);
CREATE TABLE {s}order_lines (
  order_id BIGINT REFERENCES {s}orders (id), sku VARCHAR REFERENCES {s}products (sku),
  quantity SMALLINT, PRIMARY KEY (order_id, sku));
CREATE TABLE {s}shelves (room INTEGER, place INTEGER, note VARCHAR, PRIMARY KEY (room, place));
CREATE TABLE {s}stock (
  id INTEGER PRIMARY KEY, room INTEGER, place INTEGER,
  FOREIGN KEY (room, place) REFERENCES {s}shelves (room, place));
CREATE TABLE {s}visits (id INTEGER PRIMARY KEY, customer_id INTEGER);
CREATE TABLE {s}scraps (text VARCHAR);
INSERT INTO {s}customers VALUES (1, 'Ann', 'x', DATE '1990-01-01'), (2, 'Ben', NULL, NULL);
INSERT INTO {s}categories VALUES (1, NULL, 'all');
INSERT INTO {s}categories VALUES (2, 1, 'books');
INSERT INTO {s}products VALUES ('b1', 'books', 9.99), ('b2', NULL, 1.00);
INSERT INTO {s}orders VALUES
  (10, 1, TIMESTAMP '2026-01-01 00:00:00', true), (11, NULL, NULL, false);
INSERT INTO {s}order_lines VALUES (10, 'b1', 2), (10, 'b2', 1), (11, 'b1', 1);
INSERT INTO {s}shelves VALUES (1, 1, 'a'), (1, 2, 'b');
INSERT INTO {s}stock VALUES (1, 1, 2), (2, NULL, NULL);
INSERT INTO {s}visits VALUES (1, 1), (2, 99);
INSERT INTO {s}scraps VALUES ('x');
"""
NODES = {
    "Customer": 2,
    "Category": 2,
    "Product": 2,
    "Orders": 2,
    "Shelf": 2,
    "Stock": 2,
    "Visit": 2,
}
EDGES = {
    "HAS_PARENT": 1,
    "HAS_CATEGORY": 1,
    "HAS_BUYER": 1,
    "ORDER_LINES": 3,
    "HAS_SHELF": 1,
    "HAS_CUSTOMER": 1,
}


async def inferred(deployment: Deployment, number: int, **scope: Any) -> Inferred:
    return await deployment.graphs.inference.infer(number, Scope(**scope), ME)


async def exported(deployment: Deployment, number: int, proposal: Inferred) -> None:
    """The proposal as it is: accepted, exported, and counted."""
    check(proposal.definitions)
    draft = Draft(name="inferred", definitions=proposal.definitions, data_source_id=number)
    written = await deployment.graphs.authoring.create(draft, ME)
    assert written.warnings == ()
    snapshot = await deployment.graphs.mapped.create(
        written.mapping.mapping_id, None, owner="me", name="s"
    )
    async with deployment.working():
        ready = await deployment.ready(snapshot.snapshot_id)
    assert ready.node_counts == NODES
    assert ready.edge_counts == EDGES


def looked_at(proposal: Inferred) -> None:
    nodes = {node.label: node for node in proposal.definitions.nodes}
    assert set(nodes) == set(NODES)
    customer = nodes["Customer"]
    assert (customer.primary_key.name, customer.primary_key.type) == ("customer_id", "INT64")
    assert [(column.name, column.type) for column in customer.properties] == [
        ("Full_Name", "STRING"),
        ("order_1", "STRING"),
        ("born", "DATE"),
    ]
    assert [(column.name, column.type) for column in nodes["Product"].properties][1] == (
        "price",
        "DOUBLE",
    )
    assert (nodes["Shelf"].primary_key.type, len(nodes["Shelf"].properties)) == ("STRING", 3)
    edges = {edge.type: edge for edge in proposal.definitions.edges}
    assert (edges["HAS_PARENT"].from_node, edges["HAS_PARENT"].to_node) == ("Category", "Category")
    assert (edges["ORDER_LINES"].from_node, edges["ORDER_LINES"].to_node) == ("Orders", "Product")
    assert [(column.name, column.type) for column in edges["ORDER_LINES"].properties] == [
        ("quantity", "INT16")
    ]
    notes = {(note.entity, note.column) for note in proposal.notes}
    assert notes == {
        ("Table visits", "customer_id"),
        ("Table scraps", ""),
        ("Table products", "price"),
    }


async def test_a_postgres_schema_with_foreign_keys_runs_as_it_is_proposed(
    deployment: Deployment, warehouse: str
) -> None:
    async with connected(warehouse) as connection:
        await connection.execute(
            "CREATE SCHEMA shop; CREATE VIEW shop.v AS SELECT 1 AS id;" + SHOP.format(s="shop.")
        )
    number = await deployment.source("postgres", postgres(warehouse), postgres_secrets(warehouse))
    proposal = await inferred(deployment, number, schema="shop")
    looked_at(proposal)
    await exported(deployment, number, proposal)


async def test_a_duckdb_schema_with_foreign_keys_runs_as_it_is_proposed(
    deployment: Deployment, tmp_path: Path
) -> None:
    with duckdb.connect(str(tmp_path / "w.duckdb")) as db:
        db.execute(SHOP.format(s=""))
    number = await deployment.source("duckdb", {"database": str(tmp_path / "w.duckdb")})
    proposal = await inferred(deployment, number)
    looked_at(proposal)
    await exported(deployment, number, proposal)


async def test_without_declared_keys_names_are_gone_by_and_said_to_be(
    deployment: Deployment, tmp_path: Path
) -> None:
    with duckdb.connect(str(tmp_path / "w.duckdb")) as db:
        db.execute("CREATE TABLE people (id INTEGER, name VARCHAR, tags VARCHAR[], wait INTERVAL)")
        db.execute("CREATE TABLE pets (pet_id INTEGER, person_id INTEGER, friend_id INTEGER)")
        db.execute("INSERT INTO people (id) VALUES (1), (NULL)")
        db.execute("INSERT INTO pets VALUES (1, 1, NULL), (NULL, 1, 1), (2, 7, 1)")
    number = await deployment.source("duckdb", {"database": str(tmp_path / "w.duckdb")})
    proposal = await inferred(deployment, number)
    person, pet = proposal.definitions.nodes
    assert (person.label, person.primary_key.name) == ("Person", "id")
    assert [(column.name, column.type) for column in person.properties] == [
        ("name", "STRING"),
        ("wait", "STRING"),
    ]
    assert pet.primary_key.name == "pet_id"
    [owned] = proposal.definitions.edges
    assert (owned.type, owned.from_node, owned.to_node) == ("HAS_PERSON", "Pet", "Person")
    with duckdb.connect(str(tmp_path / "w.duckdb"), read_only=True) as db:
        assert [len(db.sql(entity.sql)) for entity in (person, pet, owned)] == [1, 2, 1]
    assert {(note.entity, note.column) for note in proposal.notes} == {
        ("Table people", "id"),
        ("Table people", "tags"),
        ("Table pets", "pet_id"),
        ("Table pets", "person_id"),
    }


async def test_the_tables_are_chosen_and_a_choice_that_is_not_there_is_said(
    deployment: Deployment, duck: int, tmp_path: Path
) -> None:
    with duckdb.connect(str(tmp_path / "two.duckdb")) as db:
        db.execute(
            "CREATE SCHEMA a; CREATE SCHEMA b; "
            "CREATE TABLE a.t (id INTEGER); CREATE TABLE b.t (id INTEGER)"
        )
        db.execute("CREATE TABLE a.nothing (x INTEGER)")
    two = await deployment.source("duckdb", {"database": str(tmp_path / "two.duckdb")})
    with pytest.raises(InvalidInput, match="2 schemas") as several:
        await inferred(deployment, two)
    assert several.value.details["schemas"] == ["two.a", "two.b"]
    [node] = (await inferred(deployment, two, schema="a", tables=("T",))).definitions.nodes
    assert node.label == "T"
    for scope in ({"schema": "c"}, {"schema": "a", "tables": ("u",)}):
        with pytest.raises(NotFound):
            await inferred(deployment, two, **scope)
    with pytest.raises(InvalidInput, match="no node to propose"):
        await inferred(deployment, two, schema="a", tables=("nothing",))
    assert [
        node.label
        for node in (await inferred(deployment, duck, tables=("customers",))).definitions.nodes
    ] == ["Customer"]


async def test_nobody_looks_into_a_source_that_is_not_theirs(
    deployment: Deployment, duck: int
) -> None:
    assert deployment.services.people is not None
    everybody = Resource(type="data_source", id=str(duck), owner="me")
    await deployment.services.people.shares.drop(everybody, EVERYBODY, actor="me")
    other = Author(username="other", role=Role.ANALYST)
    with pytest.raises(PermissionDenied):
        await deployment.graphs.inference.infer(duck, Scope(), other)


def test_names_are_made_such_as_the_rules_allow() -> None:
    words = ("customers", "order_lines", "categories", "addresses", "status", "people")
    assert [singular(word) for word in words] == [
        "customer", "order_line", "category", "address", "status", "person",
    ]  # fmt: skip
    tables = ("order_lines", "orders", "ORDER", "2fa", "ünïts", "s", "")
    assert [label(word) for word in tables] == [
        "OrderLine", "Orders", "ORDER", "T_2fa", "Unit", "S", "T",
    ]  # fmt: skip
    assert (edge_type("has-ä b"), edge_type("9")) == ("HAS_A_B", "E_9")
    assert (property_name("Full Name"), property_name("_x")) == ("Full_Name", "x")
    assert edge_type("set") == "SET_EDGE"
    assert (role("customer_id"), role("parentId"), role("id"), role("buyer")) == (
        "customer",
        "parent",
        "id",
        "buyer",
    )
    names = UniqueNames("taken")
    assert [names.add(name) for name in ("Taken", "a", "A", "match")] == [
        "Taken_1",
        "a",
        "A_1",
        "match_1",
    ]
    assert all(len(names.add("x" * 64)) <= 64 for _ in range(12))
