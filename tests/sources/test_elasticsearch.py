"""Elasticsearch's driver against a protocol-true server of ours, never against the vendor's."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pytest

from penstock.kit.errors import InvalidInput
from penstock.sources.contract import Limits, Table
from penstock.sources.errors import (
    SnapshotLost,
    SourceError,
    SourceQueryError,
    SourceRefused,
    SourceUnavailable,
)
from penstock.sources.registry import open_source
from tests.servers.elastic_fake import VERSION, ElasticFake, Index, encoded
from tests.servers.http import Fault
from tests.sources.conformance import (
    SCHEMA,
    Conformance,
    Subject,
    collect,
    collect_chunks,
    in_child,
    loaded,
    sample,
    told,
    travelled,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.sources.contract import Source

USER, PASSWORD, API_KEY = "reader", "sw0rdf'ish", "VnVhQ2ZHY0JDZGJrUW"
MILLIS, NANOS = pa.timestamp("ms", tz="UTC"), pa.timestamp("ns", tz="UTC")
_KINDS = {
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.string(): "text",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "date_nanos",
    pa.binary(): "binary",
}


def stored(table: pa.Table) -> pa.Table:
    """The table as Elasticsearch has types for it."""
    for number, field in enumerate(table.schema):
        kind = field.type
        if pa.types.is_decimal(kind) or kind == pa.timestamp("us"):
            kind = pa.string()
        elif pa.types.is_date(kind):
            kind = MILLIS
        elif pa.types.is_timestamp(kind):
            kind = NANOS
        column = table.column(number)
        if pa.types.is_date(field.type):
            column = column.cast(pa.timestamp("ms"))
        table = table.set_column(number, field.name, column.cast(kind))
    return table


def as_json(value: object) -> object:
    match value:
        case bytes():
            return encoded(value)
        case dt.datetime() if value.tzinfo:
            return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
        case dt.datetime():
            return value.isoformat(" ", timespec="microseconds")
        case dt.date():
            return f"{value.isoformat()}T00:00:00.000Z"
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


class Many:
    """Documents that are made when they are read."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, number: int) -> dict[str, Any]:
        if number >= self._rows:
            raise IndexError
        return {"n": number, "text": f"{number:0190d}"}


class ElasticSubject:
    kind = "elasticsearch"
    endless = "SELECT n FROM endless"

    def __init__(self, fake: ElasticFake) -> None:
        self.fake = fake
        self.config: dict[str, object] = {"url": fake.url, "user": USER, "retry_seconds": 0.2}
        self.secrets = {"password": PASSWORD}
        fake.authorization = "Basic " + encoded(f"{USER}:{PASSWORD}".encode())
        fake.add("endless", {"n": {"type": "long"}}, [{"n": 1}])
        fake.indices["endless"].held_back = asyncio.Event()

    async def load(self, name: str, table: pa.Table) -> None:
        properties = {
            field.name: {"type": _KINDS.get(field.type, "keyword")} for field in table.schema
        }
        rows = [{key: as_json(value) for key, value in row.items()} for row in table.to_pylist()]
        self.fake.add(name, properties, rows)

    async def many(self, rows: int) -> str:
        self.fake.indices[f"many-{rows}"] = Index(
            properties={"n": {"type": "long"}, "text": {"type": "keyword"}}, documents=Many(rows)
        )
        return f'SELECT n, text FROM "many-{rows}"'

    async def running(self) -> int:
        return self.fake.open_moments()

    def quote(self, name: str) -> str:
        return f'"{name}"'


@pytest.fixture
async def fake() -> AsyncIterator[ElasticFake]:
    async with ElasticFake() as server:
        yield server


def source_of(fake: ElasticFake, **config: object) -> Source:
    return open_source("elasticsearch", {"url": fake.url, "retry_seconds": 5, **config}, {})


async def table_of(fake: ElasticFake, sql: str, **config: object) -> pa.Table:
    async with source_of(fake, **config) as source:
        return await collect(source, sql)


class TestConformance(Conformance):
    """Where the shared suite compares whole tables, they are compared as Elasticsearch has types
    for them, and in the alphabetical order in which it tells its mapping."""

    @pytest.fixture
    async def subject(self, fake: ElasticFake) -> ElasticSubject:
        return ElasticSubject(fake)

    async def test_types_values_and_nulls_are_exact(self, subject: Subject) -> None:
        columns = ", ".join(SCHEMA.names)
        async with loaded(subject, sample=sample()) as source:
            table = await collect(source, f"SELECT {columns} FROM sample")
        assert table.sort_by("id") == stored(sample()).sort_by("id")

    async def test_a_column_of_nulls_keeps_its_type(self, subject: Subject) -> None:
        nothing = sample([dict.fromkeys(SCHEMA.names) | {"id": i} for i in range(3)])
        async with loaded(subject, nulls=nothing) as source:
            table = await collect(source, "SELECT * FROM nulls")
        assert table.select(SCHEMA.names).sort_by("id") == stored(nothing)

    async def test_zero_rows_keep_their_schema(self, subject: Subject) -> None:
        async with loaded(subject, empty=sample([])) as source:
            table = await collect(source, "SELECT * FROM empty")
            assert (await source.plan("empty", Limits())).schema == table.schema
        assert table.select(SCHEMA.names) == stored(sample([]))

    async def test_names_in_any_script_and_with_any_sign_survive(self, subject: Subject) -> None:
        table = pa.table(
            {"größe": [1], "名前": ["x"], "with space": [2], "per%cent": [3], "select": [4]}
        )
        async with loaded(subject, Überweisung=table) as source:
            actual = await collect(source, 'SELECT * FROM "Überweisung"')
        assert actual.select(table.column_names) == table

    async def test_a_thousand_columns_come_whole(self, subject: Subject) -> None:
        table = pa.table({f"c{i}": pa.array([i, None, -i], pa.int32()) for i in range(1000)})
        async with loaded(subject, wide=table) as source:
            actual = await collect(source, "SELECT * FROM wide")
        assert actual.column_names == sorted(table.column_names)
        assert actual.select(table.column_names).sort_by("c1") == table.sort_by("c1")

    async def test_a_million_rows_need_no_more_memory_than_a_few(self, subject: Subject) -> None:
        """Fewer of them here, for their server lives in this very process."""
        job = {"kind": subject.kind, "config": subject.config, "secrets": subject.secrets}
        few = await in_child({**job, "sql": await subject.many(30_000)})
        many = await in_child({**job, "sql": await subject.many(100_000)})
        assert (few["rows"], many["rows"]) == (30_000, 100_000)
        assert many["peak"] < 350
        assert many["peak"] - few["peak"] < 40


TYPES: dict[str, tuple[str, pa.DataType, Any, Any]] = {
    "long_": ("long", pa.int64(), "9223372036854775807", 2**63 - 1),
    "integer_": ("integer", pa.int32(), -(2**31), -(2**31)),
    "short_": ("short", pa.int16(), 32767, 32767),
    "byte_": ("byte", pa.int8(), -128, -128),
    "unsigned": ("unsigned_long", pa.uint64(), 2**64 - 1, 2**64 - 1),
    "double_": ("double", pa.float64(), 0.1, 0.1),
    "float_": ("float", pa.float32(), 0.5, 0.5),
    "half": ("half_float", pa.float32(), 0.25, 0.25),
    "scaled": ("scaled_float", pa.float64(), 12.34, 12.34),
    "keyword_": ("keyword", pa.string(), 5, "5"),
    "text_": ("text", pa.string(), "Zoë", "Zoë"),
    "bool_": ("boolean", pa.bool_(), "true", True),
    "iso": (
        "date",
        MILLIS,
        "2024-02-29T01:02:03.004Z",
        dt.datetime(2024, 2, 29, 1, 2, 3, 4000, tzinfo=dt.UTC),
    ),
    "millis": ("date", MILLIS, -1, dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC)),
    "day": ("date", MILLIS, "2024/02/29", dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
    "ip_": ("ip", pa.string(), "2001:db8::1", "2001:db8::1"),
    "blob": ("binary", pa.binary(), encoded(b"\x00\xff"), b"\x00\xff"),
    "place": ("geo_point", pa.string(), {"lat": 1.5, "lon": 2}, '{"lat":1.5,"lon":2}'),
    "list_": ("nested", pa.string(), [{"a": 1}, {"a": 2}], '[{"a":1},{"a":2}]'),
}


async def test_every_type_of_a_mapping_has_its_arrow_type(fake: ElasticFake) -> None:
    properties = {name: {"type": kind} for name, (kind, *_) in TYPES.items()}
    fake.add(
        "types", properties, [{name: written for name, (_, _, written, _) in TYPES.items()}, {}]
    )
    table = await table_of(fake, f"SELECT {', '.join(TYPES)} FROM types")
    assert table.schema == pa.schema([(name, arrow) for name, (_, arrow, _, _) in TYPES.items()])
    assert table.to_pylist() == [
        {name: value for name, (*_, value) in TYPES.items()},
        dict.fromkeys(TYPES),
    ]


async def test_nanoseconds_of_a_date_survive(fake: ElasticFake) -> None:
    fake.add("t", {"at": {"type": "date_nanos"}}, [{"at": "2024-01-01T00:00:00.123456789Z"}])
    table = await table_of(fake, "SELECT at FROM t")
    assert table["at"].cast(pa.int64()).to_pylist() == [1704067200123456789]


PERSON = {
    "name": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
    "address": {"properties": {"city": {"type": "keyword"}, "zip": {"type": "integer"}}},
    "pets": {"type": "nested", "properties": {"name": {"type": "keyword"}}},
    "called": {"type": "alias", "path": "address.zip"},
}
ADA = {"name": "Ada", "address": {"city": "London", "zip": "7"}, "pets": [{"name": "Rex"}]}


async def test_objects_are_json_and_their_fields_are_columns(fake: ElasticFake) -> None:
    fake.add("person", PERSON, [ADA])
    table = await table_of(
        fake, "SELECT _id, name AS n, p.name.raw, address.city, address.zip, called FROM person p"
    )
    assert table.schema.field("address.zip").type == table.schema.field("called").type == pa.int32()
    assert table.to_pylist() == [
        {
            "_id": "d0",
            "n": "Ada",
            "name.raw": "Ada",
            "address.city": "London",
            "address.zip": 7,
            "called": 7,
        }
    ]
    everything = await table_of(fake, "person")
    assert everything.column_names == ["address", "called", "name", "pets"]
    assert json.loads(everything["address"][0].as_py()) == ADA["address"]
    assert json.loads(everything["pets"][0].as_py()) == ADA["pets"]


async def test_a_field_inside_a_nested_one_is_refused_with_a_way_out(fake: ElasticFake) -> None:
    fake.add("person", PERSON, [ADA])
    with pytest.raises(SourceQueryError, match=r"pets\.name") as refused:
        await table_of(fake, "SELECT pets.name FROM person")
    assert "pets" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("kind", "value"), [("long", [1, 2]), ("keyword", ["a", "b"]), ("binary", ["AA==", "AA=="])]
)
async def test_an_array_in_a_scalar_field_is_an_error_that_names_it(
    fake: ElasticFake, kind: str, value: list[object]
) -> None:
    fake.add("t", {"tags": {"type": kind}}, [{"tags": value}])
    with pytest.raises(SourceError, match=r"Field tags has an array"):
        await table_of(fake, "SELECT tags FROM t")


async def test_a_pattern_reads_all_its_indices_unless_they_disagree(fake: ElasticFake) -> None:
    fake.add("log-1", {"n": {"type": "long"}, "x": {"type": "long"}}, [{"n": 1}])
    fake.add("log-2", {"n": {"type": "long"}, "x": {"type": "keyword"}}, [{"n": 2}])
    assert sorted((await table_of(fake, 'SELECT n FROM "log-*"'))["n"].to_pylist()) == [1, 2]
    with pytest.raises(
        SourceQueryError, match="Field x is long in one index and keyword in another"
    ):
        await table_of(fake, "log-*")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("n = 3", [3]),
        ("n > 1 AND NOT n >= 4", [2, 3]),
        ("n <= 1 OR name = 'it''s'", [0, 1, 5]),
        ("name IS NULL", [0, 1, 2, 3, 4]),
    ],
)
async def test_a_condition_is_translated_by_elasticsearch(
    fake: ElasticFake, condition: str, expected: list[int]
) -> None:
    documents: list[dict[str, Any]] = [{"n": n} for n in range(5)]
    fake.add(
        "t",
        {"n": {"type": "long"}, "name": {"type": "keyword"}},
        [*documents, {"n": 5, "name": "it's"}],
    )
    assert (await table_of(fake, f"SELECT n FROM t WHERE {condition};"))[
        "n"
    ].to_pylist() == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n FROM t ORDER BY n",
        "SELECT count(*) FROM t",
        "SELECT n + 1 FROM t",
        "SELECT n FROM t LIMIT 1",
        "SELECT n FROM t WHERE missing = 1",
        "SELECT n FROM _all",
        "_all",
        "..",
        "SELECT n FROM other.t",
    ],
)
async def test_what_cannot_be_asked_is_the_users_error(fake: ElasticFake, sql: str) -> None:
    fake.add("t", {"n": {"type": "long"}}, [{"n": 1}])
    async with source_of(fake) as source:
        with pytest.raises(SourceQueryError):
            await source.schema(sql)


class TestPointInTime:
    NUMBERS: ClassVar = {"n": {"type": "long"}}
    LIMITS: ClassVar = Limits(chunk_bytes=2000, max_chunks=5)

    async def test_slices_see_one_moment(self, fake: ElasticFake) -> None:
        documents = [{"n": n} for n in range(1000)]
        fake.add("t", self.NUMBERS, documents)
        async with source_of(fake) as source:
            plan = await source.plan("t", self.LIMITS)
            documents += [{"n": -1}] * 100
            table = await collect_chunks(source, plan)
        assert len(plan.chunks) == 5
        assert sorted(table["n"].to_pylist()) == list(range(1000))
        assert {search["slice"]["id"] for search in fake.searches()} == set(range(5))
        assert fake.open_moments() == 0

    @pytest.mark.parametrize(("rows", "chunks"), [(1000, 1), (999, 2), (200, 5), (199, 5)])
    async def test_rows_count_where_they_are_asked_for(
        self, fake: ElasticFake, rows: int, chunks: int
    ) -> None:
        fake.add("t", self.NUMBERS, [{"n": n} for n in range(1000)])
        async with source_of(fake) as source:
            plan = await source.plan("t", Limits(chunk_bytes=1, chunk_rows=rows, max_chunks=5))
            assert len(plan.chunks) == chunks
            if plan.hold is not None:
                await plan.hold.close()

    async def test_the_newest_id_is_used(self, fake: ElasticFake) -> None:
        fake.add("t", self.NUMBERS, [{"n": n} for n in range(250)])
        await table_of(fake, "t", page_rows=100)
        ids = [search["pit"]["id"] for search in fake.searches()]
        assert len(set(ids)) == len(ids) == 4

    async def test_pages_go_on_after_the_last_hit(self, fake: ElasticFake) -> None:
        fake.add("t", self.NUMBERS, [{"n": n} for n in range(250)])
        await table_of(fake, "t", page_rows=100)
        assert [search.get("search_after") for search in fake.searches()] == [
            None,
            [99],
            [199],
            [249],
        ]

    async def test_pages_of_large_documents_are_short(self, fake: ElasticFake) -> None:
        fake.add("t", {"s": {"type": "text"}}, [{"s": "x" * 1000} for _ in range(1200)])
        await table_of(fake, "t", page_bytes=100_000)
        assert [search["size"] for search in fake.searches()][:2] == [
            1000,
            pytest.approx(90, abs=10),
        ]

    async def test_an_expired_one_is_a_lost_snapshot(self, fake: ElasticFake) -> None:
        fake.add("t", self.NUMBERS, [{"n": n} for n in range(1000)])
        async with source_of(fake) as source:
            plan = await source.plan("t", self.LIMITS)
            assert plan.hold is not None
            assert await plan.hold.alive()
            late = fake.now() + 3600
            fake.now = lambda: late
            assert not await plan.hold.alive()
            with pytest.raises(SnapshotLost):
                await anext(source.stream(travelled(plan.chunks[0])))
            await plan.hold.close()

    async def test_one_that_a_shard_has_lost_is_a_lost_snapshot(self, fake: ElasticFake) -> None:
        fake.add("t", self.NUMBERS, [{"n": n} for n in range(1000)])
        async with source_of(fake) as source:
            plan = await source.plan("t", self.LIMITS)
            assert plan.hold is not None
            fake.broken_shards = 1
            assert await plan.hold.alive(), "a node that does not answer may come back"
            fake.lose_shards()
            assert not await plan.hold.alive()
            with pytest.raises(SnapshotLost):
                await anext(source.stream(travelled(plan.chunks[0])))
            await plan.hold.close()

    async def test_the_hold_makes_it_live_longer(self, fake: ElasticFake) -> None:
        fake.add("t", self.NUMBERS, [{"n": n} for n in range(1000)])
        start = fake.now()
        async with source_of(fake, keep_alive_minutes=1) as source:
            plan = await source.plan("t", self.LIMITS)
            assert plan.hold is not None
            for seconds in (50.0, 100.0, 150.0):
                fake.now = partial(float, start + seconds)
                assert await plan.hold.alive()
            await plan.hold.close()
        assert fake.open_moments() == 0

    async def test_it_is_closed_after_an_error(self, fake: ElasticFake) -> None:
        fake.add("t", self.NUMBERS, [{"n": [1, 2]}])
        with pytest.raises(SourceError):
            await table_of(fake, "t")
        assert fake.open_moments() == 0

    async def test_who_may_not_see_sizes_reads_in_one_chunk(self, fake: ElasticFake) -> None:
        fake.add("t", self.NUMBERS, [{"n": n} for n in range(1000)])
        fake.blind = True
        async with source_of(fake) as source:
            plan = await source.plan("t", self.LIMITS)
            assert (await collect_chunks(source, plan)).num_rows == 1000
        assert [chunk.snapshot for chunk in plan.chunks] == [None]


class TestFaults:
    @pytest.fixture(autouse=True)
    def documents(self, fake: ElasticFake) -> None:
        fake.add("t", {"n": {"type": "long"}}, [{"n": n} for n in range(300)])

    @pytest.mark.parametrize(
        "fault",
        [
            Fault(misdeed="status", status=429, headers={"Retry-After": "0"}, times=2),
            Fault(misdeed="status", status=503, times=2),
            Fault(misdeed="reset"),
            Fault(misdeed="torn"),
            Fault(misdeed="hang"),
        ],
        ids=lambda fault: f"{fault.misdeed}-{fault.status}",
    )
    async def test_a_bad_moment_costs_no_row(self, fake: ElasticFake, fault: Fault) -> None:
        fault.method, fault.path, fault.skip = "POST", "/_search", 1
        fake.faults.append(fault)
        table = await table_of(fake, "t", page_rows=100, request_timeout=0.5)
        assert table["n"].to_pylist() == list(range(300))

    @pytest.mark.parametrize("misdeed", ["status", "reset", "hang"])
    async def test_a_cluster_that_stays_away_is_unavailable(
        self, fake: ElasticFake, misdeed: Any
    ) -> None:
        fake.faults.append(Fault(misdeed=misdeed, method="POST", path="/_search", times=99, skip=1))
        with pytest.raises(SourceUnavailable):
            await table_of(fake, "t", page_rows=100, request_timeout=0.3, retry_seconds=0.3)
        assert fake.open_moments() == 0

    async def test_a_missing_shard_is_an_error_and_not_fewer_rows(self, fake: ElasticFake) -> None:
        fake.broken_shards = 1
        with pytest.raises(SourceError, match="1 of 2 shards"):
            await table_of(fake, "t")
        searches = [request for request in fake.requests if request.path == "/_search"]
        assert {search.query for search in searches} == {"allow_partial_search_results=false"}

    async def test_a_proxy_that_speaks_html_is_told(self, fake: ElasticFake) -> None:
        fake.faults.append(Fault(misdeed="html", path="/"))
        async with source_of(fake) as source:
            with pytest.raises(SourceError, match="JSON"):
                await source.test()

    async def test_the_trace_is_shown_to_elasticsearch(self, fake: ElasticFake) -> None:
        async with source_of(fake) as source:
            plan = await source.plan("t", Limits())
            async with aclosing(source.stream(plan.chunks[0], trace="job-7.é")) as batches:
                await anext(batches)
        assert "job-7.?" in {request.headers.get("x-opaque-id") for request in fake.requests}


class TestCredentials:
    @pytest.mark.parametrize(
        ("config", "secrets", "header"),
        [
            (
                {"user": USER},
                {"password": PASSWORD},
                "Basic " + encoded(f"{USER}:{PASSWORD}".encode()),
            ),
            ({}, {"api_key": API_KEY}, f"ApiKey {API_KEY}"),
            ({}, {"api_key": "id:s3cret"}, "ApiKey " + encoded(b"id:s3cret")),
        ],
    )
    async def test_they_are_sent_and_never_shown(
        self, fake: ElasticFake, config: dict[str, object], secrets: dict[str, str], header: str
    ) -> None:
        fake.authorization = header
        async with open_source("elasticsearch", {"url": fake.url, **config}, secrets) as source:
            assert await source.test() == f"Elasticsearch {VERSION}"
            fake.authorization = "another"
            with pytest.raises(SourceRefused) as refused:
                await source.test()
        shown = told(refused.value)
        assert "unable to authenticate" in shown
        for secret in (*secrets.values(), header.partition(" ")[2], "s3cret"):
            assert secret not in shown

    async def test_a_cluster_that_is_down_is_unavailable(self, unused_tcp_port: int) -> None:
        config = {"url": f"http://127.0.0.1:{unused_tcp_port}", "retry_seconds": 0}
        async with open_source("elasticsearch", config, {"api_key": API_KEY}) as source:
            with pytest.raises(SourceUnavailable) as down:
                await source.test()
        assert API_KEY not in told(down.value)

    @pytest.mark.parametrize(
        ("config", "secrets"),
        [
            ({"url": "http://example.com:9200"}, {}),
            ({"url": "https://u:p@example.com"}, {}),
            ({"url": "ftp://example.com"}, {}),
            ({"url": "https://example.com", "user": "u"}, {}),
            ({"url": "https://example.com"}, {"password": "p"}),
            ({"url": "https://example.com", "user": "u"}, {"password": "p", "api_key": "k"}),
        ],
    )
    def test_a_careless_configuration_is_refused(
        self, config: dict[str, object], secrets: dict[str, str]
    ) -> None:
        with pytest.raises(InvalidInput):
            open_source("elasticsearch", config, secrets)


async def test_the_catalog_shows_indices_aliases_and_fields(fake: ElasticFake) -> None:
    fake.add("Person", PERSON, [])
    fake.add(".hidden", {}, [])
    async with source_of(fake) as source:
        tables = await source.catalog.tables()
        assert [(table.catalog, table.name, table.kind) for table in tables] == [
            ("lake", "Person", "view"),
            ("lake", "person", "table"),
        ]
        columns = await source.catalog.columns(
            Table(catalog="lake", schema="default", name="person")
        )
        assert await source.catalog.keys("lake", "default") == []
    assert [(column.name, column.data_type) for column in columns] == [
        ("address", "object"),
        ("address.city", "keyword"),
        ("address.zip", "integer"),
        ("called", "integer"),
        ("name", "text"),
        ("name.raw", "keyword"),
        ("pets", "nested"),
    ]
