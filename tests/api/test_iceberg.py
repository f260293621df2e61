"""The Iceberg REST catalog API: all responses and errors follow the protocol."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.kit.errors import PenstockError
from penstock.maintenance.actions.model import Ended
from penstock.maintenance.tables.catalog.catalogs import CatalogConfig, open_catalog
from penstock.maintenance.tables.catalog.rest_catalog import ProtocolError, RestCatalogAdapter
from tests.api.control_plane import OPERATOR
from tests.api.test_tables import http, maintenance, sample, tables  # noqa: F401 - fixtures
from tests.maintenance.tables import LATER, SCHEMA, SampleTable, once, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx2

    from penstock.maintenance.actions.model import Outcome

BASE = "/api/iceberg/lake/v1"
TABLES = f"{BASE}/namespaces/shop/tables"
FIELDS = [{"id": 1, "name": "id", "type": "long", "required": False}]
GOOD = {"name": "new", "schema": {"type": "struct", "fields": FIELDS}}
BY_ID = {
    "spec-id": 0,
    "fields": [{"source-id": 1, "field-id": 1000, "transform": "identity", "name": "x"}],
}


def with_field(**changes: object) -> dict[str, Any]:
    return GOOD | {"schema": {"type": "struct", "fields": [FIELDS[0] | changes]}}


def by_id(**changes: object) -> dict[str, Any]:
    return BY_ID | {"fields": [BY_ID["fields"][0] | changes]}


async def sent(
    http: httpx2.AsyncClient,  # noqa: F811
    path: str,
    body: object,
) -> tuple[int, str]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await http.post(path, content=content, headers={"Content-Type": "application/json"})
    assert set(answer.json()) == {"error"}, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "code"}
    assert (error["code"], bool(error["message"])) == (answer.status_code, True)
    return answer.status_code, error["type"]


BAD, UNSUPPORTED = (400, "BadRequestException"), (406, "UnsupportedOperationException")


BAD_NAMESPACES: list[tuple[Any, tuple[int, str]]] = [
    (b"", BAD),
    (b"\xff", BAD),
    (b"[]", BAD),
    ({}, BAD),
    ({"namespace": None}, BAD),
    ({"namespace": "a"}, BAD),
    ({"namespace": []}, BAD),
    ({"namespace": [1]}, BAD),
    ({"namespace": [""]}, BAD),
    ({"namespace": ["a", ""]}, BAD),
    ({"namespace": ["a.b"]}, BAD),
    ({"namespace": ["a\x00"]}, BAD),
    ({"namespace": ["a\x1fb"]}, BAD),
    ({"namespace": [".."]}, BAD),
    ({"namespace": ["a/b"]}, BAD),
    ({"namespace": ["x" * 256]}, BAD),
    ({"namespace": ["x" * 200, "y" * 200]}, BAD),
    ({"namespace": ["a"], "properties": []}, BAD),
    ({"namespace": ["a"], "properties": {"x": 1}}, BAD),
    ({"namespace": ["a"], "properties": {"x": "y" * 2000}}, BAD),
    ({"namespace": ["a"], "properties": {"x": "\x00"}}, BAD),
    ({"namespace": ["shop"]}, (409, "AlreadyExistsException")),
]


async def test_a_namespace_that_cannot_be_is_refused(
    http: httpx2.AsyncClient,  # noqa: F811
) -> None:
    for body, expected in BAD_NAMESPACES:
        assert await sent(http, f"{BASE}/namespaces", body) == expected, body
    assert (await http.get(f"{BASE}/namespaces")).json() == {"namespaces": [["shop"]]}


BAD_TABLES: list[tuple[Any, tuple[int, str]]] = [
    ({"name": "x"}, BAD),
    (GOOD | {"name": None}, BAD),
    (GOOD | {"name": 1}, BAD),
    (GOOD | {"name": ""}, BAD),
    (GOOD | {"name": "x" * 256}, BAD),
    (GOOD | {"name": "../../escape"}, BAD),
    (GOOD | {"name": "a\x00b"}, BAD),
    (GOOD | {"schema": None}, BAD),
    (GOOD | {"schema": "struct"}, BAD),
    (GOOD | {"schema": {"type": "list"}}, BAD),
    (GOOD | {"schema": {"type": "struct", "fields": [1]}}, BAD),
    (GOOD | {"schema": {"type": "struct", "fields": FIELDS * 2}}, BAD),
    (with_field(type="nonsense"), BAD),
    (with_field(type={"type": "list"}), BAD),
    (with_field(id="one"), BAD),
    (with_field(name=None), BAD),
    (with_field(type="timestamp_ns"), BAD),
    (GOOD | {"partition-spec": "id"}, BAD),
    (GOOD | {"partition-spec": {"fields": [{"source-id": 1}]}}, BAD),
    (GOOD | {"partition-spec": {**BY_ID, "fields": [BY_ID["fields"][0] | {"source-id": 7}]}}, BAD),
    (
        GOOD | {"partition-spec": by_id(transform="magic")},
        BAD,
    ),
    (
        GOOD | {"write-order": {"order-id": 1, "fields": [{"source-id": 9}]}},
        BAD,
    ),
    (GOOD | {"write-order": 1}, BAD),
    (GOOD | {"properties": "x"}, BAD),
    (GOOD | {"properties": {"x": None}}, BAD),
    (GOOD | {"properties": {"format-version": "abc"}}, BAD),
    (GOOD | {"properties": {"format-version": "0"}}, BAD),
    (GOOD | {"properties": {"format-version": "3"}}, UNSUPPORTED),
    (GOOD | {"properties": {"format-version": "4"}}, UNSUPPORTED),
    (GOOD | {"properties": {"py-io-impl": "os.system"}}, BAD),
    (GOOD | {"properties": {"write.py-location-provider.impl": "os.system"}}, BAD),
    (GOOD | {"location": 1}, BAD),
    (GOOD | {"location": ""}, BAD),
    (GOOD | {"location": "relative/path"}, BAD),
    (GOOD | {"location": "nonsense://bucket/x"}, BAD),
    (GOOD | {"location": "file:///tmp/x/../../etc"}, BAD),
    (GOOD | {"location": "file:///tmp/x#1"}, BAD),
    (GOOD | {"location": "file:///proc/nowhere"}, BAD),
    (GOOD | {"location": "file:///" + "x" * 2000}, BAD),
    (GOOD | {"stage-create": True}, UNSUPPORTED),
    (GOOD | {"name": "orders"}, (409, "AlreadyExistsException")),
]


async def test_a_table_that_cannot_be_is_refused(
    http: httpx2.AsyncClient,  # noqa: F811
    tmp_path: Path,
) -> None:
    files = sorted((tmp_path / "warehouse").rglob("*"))
    for body, expected in BAD_TABLES:
        assert await sent(http, TABLES, body) == expected, body
    listed = (await http.get(TABLES)).json()["identifiers"]
    assert listed == [{"namespace": ["shop"], "name": "orders"}]
    assert sorted((tmp_path / "warehouse").rglob("*")) == files, "nothing was written"


async def test_what_can_be_is_created_and_loaded(http: httpx2.AsyncClient) -> None:  # noqa: F811
    second = GOOD | {"partition-spec": BY_ID, "properties": {"format-version": "2"}}
    created = await http.post(TABLES, json=second)
    assert (created.status_code, created.json()["metadata"]["format-version"]) == (200, 2)
    assert (await http.get(f"{TABLES}/new")).json() == created.json()
    nested = await http.post(f"{BASE}/namespaces", json={"namespace": ["a", "b"]})
    assert nested.json() == {"namespace": ["a", "b"], "properties": {}}
    assert (await http.get(f"{BASE}/namespaces?parent=a")).json() == {"namespaces": [["a", "b"]]}
    first = GOOD | {"properties": {"format-version": "1"}}
    assert (await http.post(f"{BASE}/namespaces/a%1Fb/tables", json=first)).status_code == 200
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"x": "y"}}]}
    committed = await http.post(f"{BASE}/namespaces/a%1Fb/tables/new", json=change)
    assert (committed.status_code, committed.json()["metadata"]["properties"]) == (200, {"x": "y"})
    assert (await http.get(f"{BASE}/namespaces/a%1Fb/tables/new")).status_code == 200


MISSING = [
    ("namespaces/nowhere", 404, "NoSuchNamespaceException"),
    ("namespaces/nowhere/tables", 404, "NoSuchNamespaceException"),
    ("namespaces?parent=nowhere", 404, "NoSuchNamespaceException"),
    ("namespaces?parent=%1F", 400, "BadRequestException"),
    ("namespaces/a%1F", 400, "BadRequestException"),
    ("namespaces/%00", 400, "BadRequestException"),
    ("namespaces?parent=%00", 400, "BadRequestException"),
    ("namespaces/shop/tables/%00", 400, "BadRequestException"),
    ("namespaces/shop/tables/nothing", 404, "NoSuchTableException"),
    ("namespaces/nowhere/tables/nothing", 404, "NoSuchTableException"),
    (f"namespaces/{'x' * 2000}/tables/nothing", 400, "BadRequestException"),
]


async def test_what_is_not_there_is_told_as_the_protocol_has_it(
    http: httpx2.AsyncClient,  # noqa: F811
) -> None:
    for path, status, kind in MISSING:
        answer = await http.get(f"{BASE}/{path}")
        assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind), path


async def test_a_catalog_that_is_not_configured_is_told_too(
    http: httpx2.AsyncClient,  # noqa: F811
) -> None:
    for path in ("config", "namespaces"):
        answer = await http.get(f"/api/iceberg/nowhere/v1/{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, 404)


ADD = {
    "action": "add-snapshot",
    "snapshot": {"snapshot-id": 1, "timestamp-ms": 1, "manifest-list": "x"},
}


BAD_COMMITS: list[tuple[Any, tuple[int, str]]] = [
    (b"nonsense", BAD),
    ({"updates": []}, BAD),
    ({"requirements": {}, "updates": []}, BAD),
    ({"requirements": [{"type": "nonsense"}], "updates": []}, BAD),
    ({"requirements": [{"type": "assert-table-uuid", "uuid": 7}], "updates": []}, BAD),
    ({"requirements": [], "updates": [{"action": "nonsense"}]}, BAD),
    ({"requirements": [], "updates": [{"action": "set-properties"}]}, BAD),
    ({"requirements": [], "updates": [{"action": "set-properties", "updates": {"x": None}}]}, BAD),
    ({"requirements": [], "updates": [ADD]}, BAD),
    ({"requirements": [], "updates": [{"action": "remove-snapshots", "snapshot-ids": [1]}]}, BAD),
    ({"requirements": [], "updates": [{"action": "set-current-schema", "schema-id": 99}]}, BAD),
    ({"requirements": [], "updates": [{"action": "set-default-spec", "spec-id": 99}]}, BAD),
    ({"requirements": [], "updates": [{"action": "set-location", "location": "nowhere"}]}, BAD),
    (
        {"requirements": [], "updates": [{"action": "set-location", "location": "file:///a/../b"}]},
        BAD,
    ),
    (
        {
            "requirements": [],
            "updates": [{"action": "upgrade-format-version", "format-version": 1}],
        },
        BAD,
    ),
    (
        {
            "requirements": [],
            "updates": [{"action": "upgrade-format-version", "format-version": 3}],
        },
        UNSUPPORTED,
    ),
    (
        {
            "requirements": [],
            "updates": [{"action": "set-properties", "updates": {"py-io-impl": "os.system"}}],
        },
        BAD,
    ),
    ({"requirements": [{"type": "assert-create"}], "updates": []}, (409, "CommitFailedException")),
    (
        {
            "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1}],
            "updates": [],
        },
        (409, "CommitFailedException"),
    ),
]


async def test_a_commit_that_cannot_be_is_refused_and_changes_nothing(
    http: httpx2.AsyncClient,  # noqa: F811
) -> None:
    before = (await http.get(f"{TABLES}/orders")).json()
    for body, expected in BAD_COMMITS:
        assert await sent(http, f"{TABLES}/orders", body) == expected, body
    assert (await http.get(f"{TABLES}/orders")).json() == before
    nothing = {"requirements": [], "updates": []}
    assert await sent(http, f"{TABLES}/nothing", nothing) == (404, "NoSuchTableException")


async def test_a_table_that_cannot_be_read_is_not_said_to_be_missing(
    http: httpx2.AsyncClient,  # noqa: F811
    sample: SampleTable,  # noqa: F811
) -> None:
    location = await asyncio.to_thread(lambda: sample.table.metadata_location)
    Path(location.removeprefix("file://")).write_text("nonsense")
    answer = await http.get(f"{TABLES}/orders")
    assert (answer.status_code, answer.json()["error"]["type"]) == (
        422,
        "UnprocessableEntityException",
    )
    assert await sent(http, f"{TABLES}/orders", {"requirements": [], "updates": []}) == (
        422,
        "UnprocessableEntityException",
    )
    listed = (await http.get(TABLES)).json()["identifiers"]
    assert listed == [{"namespace": ["shop"], "name": "orders"}]


async def test_a_table_of_version_3_is_shown_as_it_is_and_not_written(
    http: httpx2.AsyncClient,  # noqa: F811
    sample: SampleTable,  # noqa: F811
) -> None:
    """Another engine made it, in the same catalog."""

    def upgrade() -> dict[str, Any]:
        path = Path(sample.table.metadata_location.removeprefix("file://"))
        metadata: dict[str, Any] = json.loads(path.read_text())
        metadata |= {"format-version": 3, "next-row-id": 60, "some-later-field": 1}
        path.write_text(json.dumps(metadata))
        return metadata

    metadata = await asyncio.to_thread(upgrade)
    answer = await http.get(f"{TABLES}/orders")
    assert (answer.status_code, answer.json()["metadata"]) == (200, metadata)
    assert await sent(http, f"{TABLES}/orders", {"requirements": [], "updates": []}) == UNSUPPORTED


@pytest.fixture(scope="module")
def face(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestCatalogAdapter]:
    folder = tmp_path_factory.mktemp("face")
    uri, warehouse = f"sqlite:///{folder}/c.db", (folder / "warehouse").as_uri()
    config = CatalogConfig(name="lake", type="sql", uri=uri, properties={"warehouse": warehouse})
    catalog = open_catalog(config)
    catalog.create_namespace("shop")
    catalog.create_table(("shop", "orders"), SCHEMA)
    yield RestCatalogAdapter(catalog)
    catalog.close()


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.text(max_size=5), inner, max_size=3)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | objects(inner),
    max_leaves=5,
)
creations = st.fixed_dictionaries(
    {},
    optional={
        "name": json_values,
        "schema": json_values | st.just(GOOD["schema"]),
        "location": json_values,
        "partition-spec": json_values | st.just(BY_ID),
        "write-order": json_values,
        "properties": json_values,
    },
)
updates = st.lists(
    st.fixed_dictionaries(
        {
            "action": st.sampled_from(
                [
                    "set-properties",
                    "remove-snapshots",
                    "set-snapshot-ref",
                    "add-schema",
                    "set-location",
                    "add-spec",
                ]
            )
        },
        optional=dict.fromkeys(
            (
                "updates",
                "snapshot-ids",
                "ref-name",
                "schema",
                "location",
                "spec",
                "snapshot-id",
                "type",
            ),
            json_values,
        ),
    ),
    max_size=3,
)


def status_of(ask: Callable[[], object]) -> int:
    try:
        ask()
    except (ProtocolError, PenstockError) as e:
        return e.status
    return 200


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(namespace=json_values, creation=creations, changes=updates, path=st.text(max_size=5))
def test_nothing_that_is_sent_is_an_error_of_the_server(
    face: RestCatalogAdapter,
    namespace: object,
    creation: dict[str, Any],
    changes: list[dict[str, Any]],
    path: str,
) -> None:
    properties = {"properties": creation.get("properties")}
    for ask in (
        lambda: face.create_namespace({"namespace": namespace} | properties),
        lambda: face.create_table("shop", creation),
        lambda: face.commit("shop", "orders", {"requirements": [], "updates": changes}),
        lambda: face.namespaces(path),
        lambda: face.tables(path),
        lambda: face.table(path, path),
    ):
        assert status_of(ask) < 500
    assert face.table("shop", "orders")["metadata"]["format-version"] == 2


async def test_through_rest_a_table_inside_is_found_and_one_that_cannot_be_read_is_near_or_far(
    http: httpx2.AsyncClient,  # noqa: F811
    sample: SampleTable,  # noqa: F811
) -> None:
    """The client of a REST catalog cannot see where a table is that the server cannot load."""
    config = CatalogConfig(
        name="lake",
        type="rest",
        uri=f"{http.base_url}/api/iceberg/lake",
        properties={"token": OPERATOR},
    )

    def add(*name: str, location: str | None = None) -> SampleTable:
        sample.catalog.create_namespace_if_not_exists(name[:-1])
        sample.catalog.create_table(name, SCHEMA, location=location)
        return SampleTable(sample.catalog, name)

    def spoil(table: SampleTable) -> None:
        Path(table.table.metadata_location.removeprefix("file://")).write_text("nonsense")

    def elsewhere() -> list[tuple[Ended, bool]]:
        far = SampleTable(open_catalog(config))
        outcomes = [far.run("remove_orphan_files")]
        spoil(add("deep", "er", "broken"))
        outcomes.append(far.run("remove_orphan_files"))
        add("deep", "er", "inner", location=f"{sample.table.location()}/inner")
        outcomes.append(far.run("remove_orphan_files"))
        sample.catalog.drop_table(("deep", "er", "inner"))
        outcomes.append(far.run("remove_orphan_files"))
        far.catalog.close()
        return [(outcome.status, "inner" in outcome.message) for outcome in outcomes]

    assert await asyncio.to_thread(elsewhere) == [
        (Ended.NOTHING_TO_DO, False),
        (Ended.NOTHING_TO_DO, False),
        (Ended.REFUSED, True),
        (Ended.REFUSED, True),
    ]


async def test_through_rest_a_table_that_shares_the_folder_and_cannot_be_read_is_not_touched(
    http: httpx2.AsyncClient,  # noqa: F811
    sample: SampleTable,  # noqa: F811
) -> None:
    config = CatalogConfig(
        name="lake",
        type="rest",
        uri=f"{http.base_url}/api/iceberg/lake",
        properties={"token": OPERATOR},
    )

    def elsewhere() -> Outcome:
        sample.catalog.rename_table(sample.name, ("shop", "renamed"))
        renamed = SampleTable(sample.catalog, ("shop", "renamed"))
        sample.create()
        file = Path(renamed.table.metadata_location.removeprefix("file://"))
        file.write_text("nonsense")
        far = SampleTable(open_catalog(config))
        done = far.run("remove_orphan_files")
        far.catalog.close()
        return done

    done = await asyncio.to_thread(elsewhere)
    assert (done.status, "shop.renamed" in done.message) == (Ended.REFUSED, True)


async def test_through_rest_it_is_honoured_that_files_may_not_be_deleted_any_more(
    http: httpx2.AsyncClient,  # noqa: F811
    sample: SampleTable,  # noqa: F811
) -> None:
    config = CatalogConfig(
        name="lake",
        type="rest",
        uri=f"{http.base_url}/api/iceberg/lake",
        properties={"token": OPERATOR},
    )

    def forbid() -> None:
        with sample.table.transaction() as transaction:
            transaction.set_properties({"gc.enabled": "false"})

    def elsewhere() -> Outcome:
        far = SampleTable(open_catalog(config))
        expiry = {"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}
        done = far.run(expiry, now=lambda: LATER, step=once("deletion_recorded", forbid))
        far.catalog.close()
        return done

    assert (await asyncio.to_thread(elsewhere)).status is Ended.REFUSED
    assert len(await asyncio.to_thread(lambda: sample.table.metadata.snapshots)) == 6


async def test_a_commit_that_another_branch_came_before_is_tried_again_by_clients(
    http: httpx2.AsyncClient,  # noqa: F811
    sample: SampleTable,  # noqa: F811
) -> None:
    """Its sequence number is taken, and that is all that is wrong with it."""
    config = CatalogConfig(
        name="lake",
        type="rest",
        uri=f"{http.base_url}/api/iceberg/lake",
        properties={"token": OPERATOR},
    )

    def elsewhere() -> None:
        head = sample.table.metadata.current_snapshot_id
        sample.table.manage_snapshots().create_branch(head, "dev").commit()
        far = open_catalog(config)
        late = far.load_table(sample.name)
        with late.transaction() as transaction:
            transaction.append(rows(5000, 1))
            sample.table.append(rows(6000, 1), branch="dev")
        far.close()

    before = sample.ids()
    await asyncio.to_thread(elsewhere)
    assert sample.ids() == [*before, 5000]
