"""Mappings over HTTP: storage, validation messages and permissions."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from penstock.kit.statement_digest import statement_digest
from tests.api.answers import error
from tests.api.running_api import Api, data_of, running_api
from tests.graphs.deployment import shop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx2

    from tests.api.control_plane import Edge

CUSTOMER: dict[str, Any] = {
    "label": "Customer",
    "sql": "SELECT id, name, age FROM customers",
    "primary_key": {"name": "id", "type": "INT64"},
    "properties": [{"name": "name", "type": "STRING"}, {"name": "age", "type": "INT32"}],
}
BOUGHT: dict[str, Any] = {
    "type": "BOUGHT_WITH",
    "from_node": "Customer",
    "to_node": "Customer",
    "sql": "SELECT customer AS a, item % 1000 AS b FROM purchases",
    "from_key": "a",
    "to_key": "b",
    "properties": [],
}
SUMMARY = {
    "id", "owner_username", "name", "description", "current_version", "created_at", "updated_at",
    "ttl", "inactivity_timeout", "snapshot_count", "node_count", "edge_type_count",
    "data_source_id",
}  # fmt: skip
DETAIL = SUMMARY | {
    "node_definitions", "edge_definitions", "change_description", "version_created_at",
    "version_created_by", "version", "warnings",
}  # fmt: skip


@pytest.fixture
async def api(database: str, edge: Edge, tmp_path: Path) -> AsyncIterator[Api]:
    """With the shop as its default source, number 1."""
    async with running_api(database, edge, tmp_path / "home") as it:
        records = it.graphs.sources
        source = await records.add(
            name="shop", kind="duckdb", owner="ada", config=shop(tmp_path), secrets={}
        )
        await records.make_default(source.data_source_id)
        yield it


def body(**changes: Any) -> dict[str, Any]:
    return {"name": "shop", "node_definitions": [CUSTOMER], "edge_definitions": [BOUGHT]} | changes


def changed(**changes: Any) -> dict[str, Any]:
    return {"change_description": "because"} | changes


async def create_mapping(who: httpx2.AsyncClient, **changes: Any) -> dict[str, Any]:
    mapping: dict[str, Any] = data_of(await who.post("/api/mappings", json=body(**changes)), 201)
    return mapping


async def test_a_mapping_is_made_shown_and_listed(api: Api) -> None:
    answer = await api.ann.post("/api/mappings", json=body(description="d", ttl="PT36H"))
    mapping = data_of(answer, 201)
    assert set(mapping) == DETAIL
    assert (mapping["owner_username"], mapping["current_version"], mapping["version"]) == (
        "ann",
        1,
        1,
    )
    assert (mapping["ttl"], mapping["inactivity_timeout"], mapping["data_source_id"]) == (
        "P1DT12H",
        None,
        1,
    )
    assert (mapping["node_definitions"], mapping["edge_definitions"]) == ([CUSTOMER], [BOUGHT])
    assert (mapping["node_count"], mapping["edge_type_count"], mapping["snapshot_count"]) == (
        1,
        1,
        0,
    )
    assert mapping["warnings"] == []
    assert mapping["created_at"].endswith("Z")
    shown = await api.ben.get(f"/api/mappings/{mapping['id']}")
    assert data_of(shown) == mapping
    assert shown.headers["etag"] == answer.headers["etag"]
    listed = (await api.ben.get("/api/mappings")).json()
    assert listed["data"] == [{name: mapping[name] for name in SUMMARY}]
    assert (listed["meta"]["total"], listed["meta"]["offset"], listed["meta"]["limit"]) == (
        1,
        0,
        50,
    )


async def test_definitions_are_never_null(api: Api) -> None:
    for edges in ({}, {"edge_definitions": None}, {"edge_definitions": []}):
        document = {
            name: value for name, value in body().items() if name != "edge_definitions"
        } | edges
        assert (
            data_of(await api.ann.post("/api/mappings", json=document), 201)["edge_definitions"]
            == []
        )


async def test_lists_are_filtered_sorted_and_paged(api: Api) -> None:
    for n, who in enumerate((api.ann, api.ben, api.ann)):
        await create_mapping(who, name=f"m{n}", edge_definitions=[])

    async def names(**query: Any) -> list[str]:
        return [
            mapping["name"] for mapping in data_of(await api.ada.get("/api/mappings", params=query))
        ]

    assert await names() == ["m2", "m1", "m0"]
    assert await names(sort_by="name", sort_order="asc") == ["m0", "m1", "m2"]
    assert await names(owner="ann") == ["m2", "m0"]
    assert await names(search="M1") == ["m1"]
    assert await names(search="' OR 1=1 --") == []
    assert await names(owner="ann' OR '1'='1") == []
    assert await names(limit=1, offset=1) == ["m1"]
    moment = data_of(await api.ada.get("/api/mappings", params={"search": "m1"}))[0]["created_at"]
    assert await names(created_after=moment) == ["m2", "m1"]
    assert await names(created_before=moment) == ["m1", "m0"]
    clamped = (await api.ada.get("/api/mappings", params={"limit": 101})).json()["meta"]
    assert (clamped["limit"], clamped["total"]) == (100, 3)
    for bad in (
        {"sort_by": "sql"},
        {"sort_order": "up"},
        {"created_after": "yesterday"},
        {"offset": -1},
        {"x": 1},
    ):
        error(await api.ada.get("/api/mappings", params=bad), 422, "VALIDATION_FAILED")


SPOILT: list[tuple[dict[str, Any], str]] = [
    ({"label": "1"}, "label"),
    ({"label": "Match"}, "label"),
    ({"label": "../../etc"}, "label"),
    ({"sql": ""}, "sql"),
    ({"sql": "DROP TABLE customers"}, "sql"),
    ({"sql": "SELECT 1; SELECT 2"}, "sql"),
    ({"sql": "SELECT id, name, age FROM nowhere"}, "sql"),
    ({"sql": "SELECT id, name, agee FROM customers"}, "sql"),
    ({"sql": "SELECT id, name FROM customers"}, "age"),
    ({"primary_key": {"name": "id", "type": "DOUBLE"}}, "id"),
    ({"primary_key": {"name": "id", "type": "STRING"}}, "id"),
    ({"properties": [{"name": f"p{n}", "type": "STRING"} for n in range(101)]}, "properties"),
]


async def test_a_definition_is_refused_alike_on_create_update_and_validate(api: Api) -> None:
    mapping = await create_mapping(api.ann, edge_definitions=[])
    path = f"/api/mappings/{mapping['id']}"
    for spoilt, column in SPOILT:
        nodes = [CUSTOMER | spoilt]
        for answer in (
            await api.ann.post(
                "/api/mappings", json=body(node_definitions=nodes, edge_definitions=[])
            ),
            await api.ann.put(path, json=changed(node_definitions=nodes)),
        ):
            [problem] = error(answer, 422, "VALIDATION_FAILED")["details"]["problems"]
            assert (problem["column"], set(problem)) == (
                column,
                {"entity", "column", "problem", "suggestion"},
            )
            assert all(problem.values())
        validated = data_of(
            await api.ann.post("/api/mappings/validate", json={"node_definitions": nodes})
        )
        assert (validated["valid"], validated["problems"]) == (False, [problem])
    assert data_of(await api.ann.get(path)) == mapping
    assert (await api.ann.get("/api/mappings")).json()["meta"]["total"] == 1


async def test_the_columns_of_every_entity_are_compared_with_what_its_source_says(
    api: Api,
) -> None:
    wrong = CUSTOMER | {
        "properties": [{"name": "nam", "type": "STRING"}, {"name": "age", "type": "INT8"}]
    }
    other = BOUGHT | {"properties": [{"name": "price", "type": "DOUBLE"}]}
    other["sql"] = "SELECT customer AS a, item AS b, price FROM purchases"
    answer = await api.ann.post(
        "/api/mappings", json=body(node_definitions=[wrong], edge_definitions=[other])
    )
    problems = error(answer, 422, "VALIDATION_FAILED")["details"]["problems"]
    assert [(problem["entity"], problem["column"]) for problem in problems] == [
        ("Node Customer", "nam"),
        ("Node Customer", "name"),
        ("Edge BOUGHT_WITH", "price"),
    ]
    assert problems[0]["suggestion"] == "Is it 'name'? Then write … AS nam."
    assert "decimal128(12, 2)" in problems[2]["problem"]
    assert "CAST(price AS DOUBLE PRECISION)" in problems[2]["suggestion"]


async def test_a_source_that_does_not_answer_is_a_warning(api: Api, tmp_path: Path) -> None:
    config = {"host": "127.0.0.1", "port": 1, "database": "x", "user": "x"}
    away = await api.graphs.sources.add(
        name="away", kind="postgres", owner="ann", config=config, secrets={}
    )
    mapping = await create_mapping(api.ann, data_source_id=away.data_source_id)
    [warning] = mapping["warnings"]
    assert "could not be queried" in warning["problem"]
    refused = await api.ann.post(
        "/api/mappings",
        json=body(
            data_source_id=away.data_source_id,
            node_definitions=[CUSTOMER | {"sql": "DELETE FROM customers"}],
        ),
    )
    error(refused, 422, "VALIDATION_FAILED")
    validated = data_of(
        await api.ann.post(
            "/api/mappings/validate",
            json={"node_definitions": [CUSTOMER], "data_source_id": away.data_source_id},
        )
    )
    assert (validated["valid"], len(validated["warnings"])) == (True, 1)


async def test_a_mapping_uses_only_a_source_its_owner_may_use(api: Api, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    shop(tmp_path / "data")
    config = {"directory": str(tmp_path / "data")}
    theirs = await api.graphs.sources.add(
        name="b", kind="duckdb", owner="ben", config=config, secrets={}
    )
    number = theirs.data_source_id
    nodes = [CUSTOMER | {"sql": "SELECT id, name, age FROM shop.customers"}]
    for path in ("/api/mappings", "/api/mappings/validate"):
        document = body(node_definitions=nodes, edge_definitions=[], data_source_id=number)
        if path.endswith("validate"):
            del document["name"]
        error(await api.ann.post(path, json=document), 403, "PERMISSION_DENIED")
    mapping = await create_mapping(api.ann, edge_definitions=[])
    path = f"/api/mappings/{mapping['id']}"
    for who in (api.ann, api.ada):
        error(
            await who.put(path, json=changed(data_source_id=number, node_definitions=nodes)),
            403,
            "PERMISSION_DENIED",
        )
    assert data_of(await api.ann.get(path)) == mapping
    bens = await create_mapping(
        api.ben, node_definitions=nodes, edge_definitions=[], data_source_id=number
    )
    error(
        await api.ann.post(f"/api/mappings/{bens['id']}/copy", json={"name": "c"}),
        403,
        "PERMISSION_DENIED",
    )
    assert (
        data_of(await api.ada.post(f"/api/mappings/{bens['id']}/copy", json={"name": "c"}), 201)[
            "data_source_id"
        ]
        == number
    )
    error(
        await api.ann.post("/api/mappings", json=body(data_source_id=99)),
        404,
        "RESOURCE_NOT_FOUND",
    )
    used = error(await api.ben.delete(f"/api/data-sources/{number}"), 409, "DEPENDENCY_EXISTS")
    assert used["details"]["mapping_count"] == 2


async def test_without_a_default_source_one_is_named(api: Api) -> None:
    await api.sql("UPDATE penstock.data_source SET is_default = false")
    refused = error(await api.ann.post("/api/mappings", json=body()), 422, "VALIDATION_FAILED")
    assert refused["details"]["field"] == "data_source_id"


async def test_an_update_appends_a_version_only_when_definitions_change(api: Api) -> None:
    mapping = await create_mapping(api.ann, description="d")
    path = f"/api/mappings/{mapping['id']}"
    renamed = data_of(
        await api.ann.put(path, json=changed(name="new", node_definitions=[CUSTOMER]))
    )
    assert (renamed["name"], renamed["description"], renamed["current_version"]) == ("new", "d", 1)
    assert renamed["change_description"] is None
    less = data_of(await api.ada.put(path, json=changed(edge_definitions=[], description=None)))
    assert (less["current_version"], less["edge_definitions"], less["description"]) == (2, [], None)
    assert (less["node_definitions"], less["version_created_by"]) == ([CUSTOMER], "ada")
    assert less["change_description"] == "because"
    versions = (await api.ben.get(f"{path}/versions")).json()
    assert [version["version"] for version in versions["data"]] == [2, 1]
    assert versions["meta"]["total"] == 2
    first = data_of(await api.ben.get(f"{path}/versions/1"))
    assert (first["edge_definitions"], first["created_by"]) == ([BOUGHT], "ann")
    error(await api.ben.get(f"{path}/versions/3"), 404, "RESOURCE_NOT_FOUND")
    error(await api.ben.get(f"{path}/versions/0"), 422, "VALIDATION_FAILED")


async def test_a_source_can_be_changed_and_its_queries_are_checked_there(
    api: Api, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    other = await api.graphs.sources.add(
        name="e", kind="duckdb", owner="ann", config={"directory": str(empty)}, secrets={}
    )
    mapping = await create_mapping(api.ann)
    path = f"/api/mappings/{mapping['id']}"
    refused = await api.ann.put(path, json=changed(data_source_id=other.data_source_id))
    assert len(error(refused, 422, "VALIDATION_FAILED")["details"]["problems"]) == 2


async def test_an_update_that_breaks_a_rule_changes_nothing(api: Api) -> None:
    mapping = await create_mapping(api.ann, name="n" * 255, description="d" * 4000)
    path = f"/api/mappings/{mapping['id']}"
    spoilt: list[dict[str, Any]] = [
        {"name": ""},
        {"name": " "},
        {"name": "n" * 256},
        {"name": "a\x00b"},
        {"description": "d" * 4001},
        {"change_description": ""},
        {"change_description": "x" * 1001},
        {"expected_version": 0},
        {"node_definitions": []},
        {"owner_username": "ben"},
    ]
    for bad in ({"name": "x"}, *(changed(**change) for change in spoilt)):
        error(await api.ann.put(path, json=bad), 422, "VALIDATION_FAILED")
    assert data_of(await api.ann.get(path)) == mapping
    saved = data_of(
        await api.ann.put(path, json=changed(change_description="x" * 1000, edge_definitions=[]))
    )
    assert saved["change_description"] == "x" * 1000


async def test_a_lost_update_is_refused_by_version_and_by_etag(api: Api) -> None:
    mapping = await create_mapping(api.ann)
    path = f"/api/mappings/{mapping['id']}"
    tag = (await api.ann.get(path)).headers["etag"]
    renamed = await api.ann.put(path, json=changed(name="a"), headers={"If-Match": tag})
    assert data_of(renamed)["name"] == "a"
    lost = error(
        await api.ann.put(path, json=changed(name="b"), headers={"If-Match": tag}), 409, "CONFLICT"
    )
    assert lost["details"]["current_version"] == 1
    weak = f"W/{renamed.headers['etag']}"
    for header in (weak, '"1"', "1", "*", '"x", "1"'):
        data_of(
            await api.ann.put(
                path, json=changed(name="a", expected_version=1), headers={"If-Match": header}
            )
        )
    data_of(await api.ann.put(path, json=changed(edge_definitions=[], expected_version=1)))
    error(await api.ann.put(path, json=changed(name="d", expected_version=1)), 409, "CONFLICT")
    error(
        await api.ann.put(path, json=changed(name="d"), headers={"If-Match": '"1"'}),
        409,
        "CONFLICT",
    )
    assert data_of(await api.ann.get(path))["name"] == "a"


async def test_of_many_updates_to_one_version_one_is_taken(api: Api) -> None:
    mapping = await create_mapping(api.ann)
    path = f"/api/mappings/{mapping['id']}"

    async def update(n: int) -> int:
        nodes = [CUSTOMER | {"label": f"C{n}"}]
        document = changed(node_definitions=nodes, edge_definitions=[], expected_version=1)
        return (await api.ann.put(path, json=document)).status_code

    assert sorted(await asyncio.gather(*(update(n) for n in range(6)))) == [200] + [409] * 5
    assert data_of(await api.ann.get(path))["current_version"] == 2


async def test_of_many_updates_that_expect_nothing_none_is_lost(api: Api) -> None:
    """Each changes one half of the definitions; had one been made to an old reading, it would undo
    another's half."""
    mapping = await create_mapping(api.ann)
    path = f"/api/mappings/{mapping['id']}"

    async def update(n: int) -> int:
        half: dict[str, Any] = (
            {"node_definitions": [CUSTOMER, CUSTOMER | {"label": f"C{n}"}]}
            if n % 2
            else {"edge_definitions": [BOUGHT | {"type": f"E{n}"}]}
        )
        version: int = data_of(await api.ann.put(path, json=changed(**half)))["version"]
        return version

    versions = await asyncio.gather(*(update(n) for n in range(6)))
    assert sorted(versions) == [2, 3, 4, 5, 6, 7]
    history = [data_of(await api.ann.get(f"{path}/versions/{version}")) for version in range(1, 8)]
    for before, after in pairwise(history):
        same = [
            name for name in ("node_definitions", "edge_definitions") if before[name] == after[name]
        ]
        assert len(same) == 1


async def test_versions_are_compared(api: Api) -> None:
    mapping = await create_mapping(api.ann)
    path = f"/api/mappings/{mapping['id']}"
    nodes = [
        CUSTOMER | {"properties": [], "sql": "SELECT id FROM customers"},
        CUSTOMER | {"label": "Other"},
    ]
    data_of(await api.ann.put(path, json=changed(node_definitions=nodes, edge_definitions=[])))
    diff = data_of(await api.ben.get(f"{path}/versions/1/diff/2"))
    assert set(diff) == {"mapping_id", "from_version", "to_version", "summary", "changes"}
    assert diff["summary"] == {
        "nodes_added": 1, "nodes_removed": 0, "nodes_modified": 1,
        "edges_added": 0, "edges_removed": 1, "edges_modified": 0,
    }  # fmt: skip
    modified, added = diff["changes"]["nodes"]
    assert (modified["label"], modified["change_type"], modified["fields_changed"]) == (
        "Customer",
        "modified",
        ["sql", "properties"],
    )
    assert (modified["from"], modified["to"]) == (CUSTOMER, nodes[0])
    assert (added["label"], added["change_type"], added["from"], added["to"]) == (
        "Other",
        "added",
        None,
        nodes[1],
    )
    [removed] = diff["changes"]["edges"]
    assert (removed["type"], removed["change_type"], removed["to"]) == (
        "BOUGHT_WITH",
        "removed",
        None,
    )
    back = data_of(await api.ben.get(f"{path}/versions/2/diff/1"))
    assert back["summary"]["edges_added"] == back["summary"]["nodes_removed"] == 1
    assert (await api.ben.get(f"{path}/versions/1/diff/1")).status_code == 400
    error(await api.ben.get(f"{path}/versions/1/diff/9"), 404, "RESOURCE_NOT_FOUND")


async def test_an_old_version_is_restored_as_a_new_one(api: Api) -> None:
    mapping = await create_mapping(api.ann)
    path = f"/api/mappings/{mapping['id']}"
    data_of(await api.ann.put(path, json=changed(edge_definitions=[])))
    restored = data_of(await api.ann.post(f"{path}/versions/1/restore"))
    assert (restored["current_version"], restored["edge_definitions"]) == (3, [BOUGHT])
    assert restored["change_description"] == "Restored version 1"
    error(await api.ann.post(f"{path}/versions/9/restore"), 404, "RESOURCE_NOT_FOUND")
    error(await api.ben.post(f"{path}/versions/1/restore"), 403, "PERMISSION_DENIED")


async def test_anybody_copies_a_mapping_and_owns_the_copy(api: Api) -> None:
    mapping = await create_mapping(api.ann, description="d", ttl="P1D")
    data_of(await api.ann.put(f"/api/mappings/{mapping['id']}", json=changed(edge_definitions=[])))
    copy = data_of(
        await api.ben.post(f"/api/mappings/{mapping['id']}/copy", json={"name": "copy"}), 201
    )
    assert (copy["owner_username"], copy["current_version"], copy["name"]) == ("ben", 1, "copy")
    assert (copy["description"], copy["ttl"], copy["edge_definitions"]) == ("d", "P1D", [])
    error(
        await api.ben.post(f"/api/mappings/{mapping['id']}/copy", json={"name": ""}),
        422,
        "VALIDATION_FAILED",
    )
    error(
        await api.ben.post("/api/mappings/99/copy", json={"name": "x"}), 404, "RESOURCE_NOT_FOUND"
    )


async def test_a_lifecycle_is_set_within_its_limit_and_cleared_with_null(api: Api) -> None:
    data_of(
        await api.oz.put(
            "/api/config/lifecycle", json={"mapping": {"max_ttl": "P30D", "default_ttl": "P3D"}}
        )
    )
    mapping = await create_mapping(api.ann)
    assert mapping["ttl"] == "P3D"
    path = f"/api/mappings/{mapping['id']}/lifecycle"
    life = data_of(await api.ann.put(path, json={"ttl": "P30D", "inactivity_timeout": "PT30M"}))
    assert (life["ttl"], life["inactivity_timeout"]) == ("P30D", "PT30M")
    life = data_of(await api.ann.put(path, json={"ttl": None}))
    assert (life["ttl"], life["inactivity_timeout"]) == (None, "PT30M")
    for bad in ("P30DT1S", "P", "PT", "-P1D", "P0D", "1 day"):
        error(await api.ann.put(path, json={"ttl": bad}), 422, "VALIDATION_FAILED")
        error(
            await api.ann.post("/api/mappings", json=body(inactivity_timeout=bad)),
            422,
            "VALIDATION_FAILED",
        )
    error(await api.ben.put(path, json={"ttl": "P1D"}), 403, "PERMISSION_DENIED")


async def test_a_mapping_is_deleted_only_by_its_owner_and_only_without_snapshots(
    api: Api,
) -> None:
    mapping = await create_mapping(api.ann)
    path = f"/api/mappings/{mapping['id']}"
    error(await api.ben.delete(path), 403, "PERMISSION_DENIED")
    error(await api.ben.put(path, json=changed(name="x")), 403, "PERMISSION_DENIED")
    snapshot = await api.snapshot(mapping_id=mapping["id"], mapping_version=1)
    refused = error(await api.ann.delete(path), 409, "DEPENDENCY_EXISTS")
    assert (refused["details"]["snapshot_count"], refused["details"]["snapshots"]) == (
        1,
        [snapshot],
    )
    await api.sql("DELETE FROM penstock.snapshot")
    await api.ben.post(
        "/api/favorites", json={"resource_type": "mapping", "resource_id": mapping["id"]}
    )
    data_of(await api.ann.delete(path))
    error(await api.ann.get(path), 404, "RESOURCE_NOT_FOUND")
    error(await api.ann.delete(path), 404, "RESOURCE_NOT_FOUND")
    assert data_of(await api.ben.get("/api/favorites")) == []
    assert await api.sql("SELECT FROM penstock.mapping_version") == []


async def test_a_repeated_request_makes_one_mapping(api: Api) -> None:
    key = {"Idempotency-Key": "once"}
    first, second = [
        await api.ann.post("/api/mappings", json=body(), headers=key) for _ in range(2)
    ]
    assert data_of(first, 201) == data_of(second, 201)
    assert second.headers["etag"] == first.headers["etag"]
    error(
        await api.ann.post("/api/mappings", json=body(name="other"), headers=key), 409, "CONFLICT"
    )
    assert len(data_of(await api.ann.get("/api/mappings"))) == 1


async def test_a_tree_has_everything_in_it(api: Api) -> None:
    mapping = await create_mapping(api.ann)
    path = f"/api/mappings/{mapping['id']}"
    data_of(await api.ann.put(path, json=changed(edge_definitions=[])))
    for version, status in ((1, "ready"), (1, "failed"), (2, "ready")):
        snapshot = await api.snapshot(
            mapping_id=mapping["id"], mapping_version=version, status=status
        )
        if status == "ready":
            await api.instance(name=f"i{version}", snapshot_id=snapshot)
    tree = data_of(await api.ben.get(f"{path}/tree"))
    assert set(tree) == {"id", "name", "owner_username", "current_version", "versions", "totals"}
    assert tree["totals"] == {"version_count": 2, "snapshot_count": 3, "instance_count": 2}
    second, first = tree["versions"]
    assert (second["version"], second["snapshot_count"], second["change_description"]) == (
        2,
        1,
        "because",
    )
    assert [snapshot["status"] for snapshot in first["snapshots"]] == ["failed", "ready"]
    [leaf] = second["snapshots"][0]["instances"]
    assert (leaf["name"], leaf["status"], second["snapshots"][0]["instance_count"]) == (
        "i2",
        "failed",
        1,
    )
    bare = data_of(await api.ben.get(f"{path}/tree", params={"include_instances": False}))
    assert (bare["versions"][0]["snapshots"][0]["instances"], bare["totals"]["instance_count"]) == (
        [],
        2,
    )
    ready = data_of(await api.ben.get(f"{path}/tree", params={"status": "ready"}))
    assert ready["totals"] == {"version_count": 2, "snapshot_count": 2, "instance_count": 2}
    error(await api.ben.get(f"{path}/tree", params={"status": "odd"}), 422, "VALIDATION_FAILED")
    error(await api.ben.get("/api/mappings/99/tree"), 404, "RESOURCE_NOT_FOUND")


async def test_nothing_is_made_in_maintenance_and_everything_is_read(api: Api) -> None:
    mapping = await create_mapping(api.ann)
    data_of(await api.oz.put("/api/config/maintenance", json={"enabled": True, "message": "soon"}))
    error(await api.ann.post("/api/mappings", json=body()), 503, "MAINTENANCE")
    error(
        await api.ann.post(f"/api/mappings/{mapping['id']}/copy", json={"name": "c"}),
        503,
        "MAINTENANCE",
    )
    assert data_of(await api.ann.get(f"/api/mappings/{mapping['id']}")) == mapping


async def test_strange_names_and_bodies_are_kept_or_refused_never_a_fault(api: Api) -> None:
    for name in ("Ünïcödé 图 🕸", "'; DROP TABLE penstock.mapping; --", "../../x", "<b>"):
        assert (await create_mapping(api.ann, name=name, edge_definitions=[]))["name"] == name
    for content in (b"", b"{", b"[]", b'"x"', b'{"name": "\\ud800"}', b"\xff"):
        error(await api.ann.post("/api/mappings", content=content), 422, "VALIDATION_FAILED")
    error(await api.ann.post("/api/mappings", content=b" " * 10_500_000), 413, "PAYLOAD_TOO_LARGE")
    for bad in (
        body(node_definitions=None),
        body(node_definitions={}),
        body(node_definitions=[1]),
        body(id=3),
    ):
        error(await api.ann.post("/api/mappings", json=bad), 422, "VALIDATION_FAILED")


async def test_a_proposal_is_made_from_a_schema_and_taken_as_it_is(api: Api) -> None:
    inferred = data_of(await api.ann.post("/api/mappings/infer", json={"schema": "main"}))
    assert set(inferred) == {"data_source_id", "node_definitions", "edge_definitions", "warnings"}
    assert [node["label"] for node in inferred["node_definitions"]] == ["Customer"]
    assert any("guessed from its name" in warning["problem"] for warning in inferred["warnings"])
    proposal = {name: value for name, value in inferred.items() if name != "warnings"}
    assert (
        data_of(await api.ann.post("/api/mappings", json={"name": "inferred", **proposal}), 201)[
            "warnings"
        ]
        == []
    )
    error(
        await api.ann.post("/api/mappings/infer", json={"schema": "nowhere"}),
        404,
        "RESOURCE_NOT_FOUND",
    )
    for bad in (
        {"tables": []},
        {"schema": ""},
        {"schema": "\x00"},
        {"table": "x"},
        {"tables": ["t"] * 201},
    ):
        error(await api.ann.post("/api/mappings/infer", json=bad), 422, "VALIDATION_FAILED")


async def test_every_statement_of_a_mapping_is_logged_with_its_author_and_digest(
    api: Api,
) -> None:
    with capture_logs() as logs:
        mapping = await create_mapping(api.ann)
        node = CUSTOMER | {"sql": "SELECT id, name, age FROM customers WHERE id > 7"}
        await api.ann.put(f"/api/mappings/{mapping['id']}", json=changed(node_definitions=[node]))
        await api.ben.post(
            "/api/mappings/validate", json={"node_definitions": [CUSTOMER], "data_source_id": 1}
        )
    events = [
        (event["author"], event["statement_sha256"])
        for event in logs
        if event["event"] == "statement"
    ]
    assert events == [
        ("ann", statement_digest(CUSTOMER["sql"])),
        ("ann", statement_digest(BOUGHT["sql"])),
        ("ann", statement_digest(node["sql"])),
        ("ben", statement_digest(CUSTOMER["sql"])),
    ]
    assert not [event for event in logs if "customers" in str(event)], "the text is in no log"
    assert (
        'penstock_statements_total{surface="mapping"} 4.0' in (await api.ann.get("/metrics")).text
    )
