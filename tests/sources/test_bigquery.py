"""BigQuery's driver against a protocol-true server of ours, never against the vendor's."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

import asyncio
import datetime as dt
import json
import sys
from contextlib import aclosing
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import grpc
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from penstock.kit.errors import InvalidInput, PenstockError
from penstock.sources.bigquery import streams
from penstock.sources.contract import Limits, Table
from penstock.sources.errors import (
    DriverMissing,
    SnapshotLost,
    SourceError,
    SourceQueryError,
    SourceRefused,
    SourceUnavailable,
)
from penstock.sources.registry import open_source
from tests.servers.bigquery_fake import DATASET, PROJECT, BigQueryFake, Result
from tests.servers.http import Fault
from tests.sources.conformance import (
    SCHEMA,
    Conformance,
    Subject,
    chunk,
    collect,
    collect_batches,
    collect_chunks,
    freed,
    in_child,
    loaded,
    sample,
    started,
    told,
    travelled,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.sources.contract import Source

ROWS = "SELECT id FROM numbers"
QUERIES = f"/bigquery/v2/projects/{PROJECT}/queries"
JOBS = f"/bigquery/v2/projects/{PROJECT}/jobs"


def stored(table: pa.Table) -> pa.Table:
    """BigQuery has one integer type."""
    fields = [
        (field.name, pa.int64() if pa.types.is_integer(field.type) else field.type)
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def config_of(fake: BigQueryFake) -> dict[str, object]:
    return {
        "project": PROJECT,
        "dataset": DATASET,
        "rest_endpoint": fake.url,
        "storage_endpoint": fake.storage_url,
        "retry_seconds": 1,
    }


def source_of(fake: BigQueryFake, **config: object) -> Source:
    return open_source("bigquery", {**config_of(fake), **config}, {})


@pytest.fixture
async def fake() -> AsyncIterator[BigQueryFake]:
    async with BigQueryFake() as server:
        yield server


@pytest.fixture
def numbers(fake: BigQueryFake) -> pa.Table:
    table = pa.table({"id": pa.array(range(1000), pa.int64())})
    fake.load("numbers", table)
    fake.batch_rows = 100
    return table


class BigQuerySubject:
    kind = "bigquery"
    endless = "SELECT n FROM endless"

    def __init__(self, fake: BigQueryFake) -> None:
        self.fake = fake
        self.config = config_of(fake)
        self.secrets: dict[str, str] = {}
        fake.load("endless", pa.table({"n": pa.array([1], pa.int64())}))

    async def load(self, name: str, table: pa.Table) -> None:
        self.fake.load(name, table)

    async def many(self, rows: int) -> str:
        sql = f"SELECT * FROM many_{rows}"
        relation = self.fake.duck.sql(
            f"SELECT range AS n, repeat('x', 180) || range AS text FROM range({rows})"
        )
        fields = [{"name": "n", "type": "INTEGER"}, {"name": "text", "type": "STRING"}]
        self.fake.canned[sql] = Result(fields=fields, table=relation.to_arrow_table())
        return sql

    async def running(self) -> int:
        return self.fake.running()

    def quote(self, name: str) -> str:
        return f"`{name}`"


class TestConformance(Conformance):
    @pytest.fixture
    async def subject(self, fake: BigQueryFake) -> BigQuerySubject:
        return BigQuerySubject(fake)

    async def test_types_values_and_nulls_are_exact(self, subject: Subject) -> None:
        async with loaded(subject, sample=sample()) as source:
            table = await collect(source, "SELECT * FROM sample")
        assert table.sort_by("id") == stored(sample()).sort_by("id")

    async def test_a_column_of_nulls_keeps_its_type(self, subject: Subject) -> None:
        nothing = sample([dict.fromkeys(SCHEMA.names) | {"id": i} for i in range(3)])
        async with loaded(subject, nulls=nothing) as source:
            assert (await collect(source, "SELECT * FROM nulls")).sort_by("id") == stored(nothing)

    async def test_zero_rows_keep_their_schema(self, subject: Subject) -> None:
        async with loaded(subject, empty=sample([])) as source:
            plan = await source.plan("SELECT * FROM empty", Limits())
            assert await collect_chunks(source, plan) == stored(sample([]))
            assert await collect(source, "SELECT * FROM empty") == stored(sample([]))

    async def test_a_thousand_columns_come_whole(self, subject: Subject) -> None:
        table = stored(
            pa.table({f"c{i}": pa.array([i, None, -i], pa.int32()) for i in range(1000)})
        )
        async with loaded(subject, wide=table) as source:
            assert (await collect(source, "SELECT * FROM wide")).sort_by("c1") == table.sort_by(
                "c1"
            )

    async def test_a_million_rows_need_no_more_memory_than_a_few(self, subject: Subject) -> None:
        """Fewer of them here, for their server lives in this very process."""
        job = {"kind": subject.kind, "config": subject.config, "secrets": subject.secrets}
        few = await in_child({**job, "sql": await subject.many(60_000)})
        many = await in_child({**job, "sql": await subject.many(600_000)})
        assert (few["rows"], many["rows"]) == (60_000, 600_000)
        assert many["mb"] > 110
        assert many["peak"] < 350
        assert many["peak"] - few["peak"] < 80


TYPES: list[tuple[dict[str, Any], pa.DataType, Any]] = [
    ({"type": "NUMERIC"}, pa.decimal128(38, 9), Decimal("-12345678901234567890.123456789")),
    ({"type": "BIGNUMERIC"}, pa.decimal256(76, 38), Decimal("1." + "0" * 37 + "1")),
    ({"type": "TIME"}, pa.time64("us"), dt.time(23, 59, 59, 999999)),
    ({"type": "JSON"}, pa.string(), '{"a":1}'),
    ({"type": "GEOGRAPHY"}, pa.string(), "POINT(1 2)"),
    ({"type": "INTEGER", "mode": "REPEATED"}, pa.list_(pa.int64()), [1, 2]),
    (
        {
            "type": "RECORD",
            "fields": [{"name": "a", "type": "STRING"}, {"name": "b", "type": "NUMERIC"}],
        },
        pa.struct([("a", pa.string()), ("b", pa.decimal128(38, 9))]),
        {"a": "x", "b": Decimal("0.000000001")},
    ),
    (
        {"type": "RECORD", "mode": "REPEATED", "fields": [{"name": "d", "type": "DATE"}]},
        pa.list_(pa.struct([("d", pa.date32())])),
        [{"d": dt.date(1, 1, 1)}, {"d": dt.date(9999, 12, 31)}],
    ),
    (
        {"type": "RANGE", "rangeElementType": {"type": "DATE"}},
        pa.struct([("start", pa.date32()), ("end", pa.date32())]),
        {"start": dt.date(2024, 1, 1), "end": None},
    ),
]


@pytest.mark.parametrize(
    ("field", "kind", "value"), TYPES, ids=lambda parameter: str(parameter)[:40]
)
async def test_bigquery_types_leave_it_exactly(
    fake: BigQueryFake, field: dict[str, Any], kind: pa.DataType, value: object
) -> None:
    fake.canned["SELECT v"] = Result(
        fields=[{"name": "v", **field}], table=pa.table({"v": pa.array([value], kind)})
    )
    async with source_of(fake) as source:
        table = await collect(source, "SELECT v")
    assert table == pa.table({"v": pa.array([value], kind)})


async def test_metadata_that_bigquery_puts_on_a_column_is_no_surprise(fake: BigQueryFake) -> None:
    extended = pa.field("v", pa.string(), metadata={"ARROW:extension:name": "google:sqlType:json"})
    table = pa.table([pa.array(["{}"])], schema=pa.schema([extended]))
    fake.canned["SELECT v"] = Result(fields=[{"name": "v", "type": "JSON"}], table=table)
    async with source_of(fake) as source:
        assert (await collect(source, "SELECT v")).schema == pa.schema([("v", pa.string())])


async def test_a_type_without_a_place_in_parquet_is_refused_with_a_way_out(
    fake: BigQueryFake,
) -> None:
    fake.canned["SELECT v"] = Result(fields=[{"name": "v", "type": "INTERVAL"}], table=pa.table({}))
    async with source_of(fake) as source:
        with pytest.raises(SourceQueryError, match="v is INTERVAL") as refused:
            await source.schema("SELECT v")
    assert refused.value.hint == "CAST(v AS STRING)"


async def test_a_digit_too_many_is_an_error_and_not_rounded(fake: BigQueryFake) -> None:
    field = {"name": "v", "type": "NUMERIC", "precision": "5", "scale": "2"}
    sent = pa.table({"v": pa.array([Decimal("1.234")], pa.decimal128(38, 9))})
    fake.canned["SELECT v"] = Result(fields=[field], table=sent)
    async with source_of(fake) as source:
        with pytest.raises(SourceError, match="does not fit"):
            await collect(source, "SELECT v")


class TestStreams:
    async def test_the_streams_of_one_session_are_the_chunks(
        self, fake: BigQueryFake, numbers: pa.Table
    ) -> None:
        async with source_of(fake) as source:
            plan = await source.plan(ROWS, Limits(chunk_bytes=2000, max_chunks=3))
            fake.load("numbers", numbers.slice(0, 1))
            table = await collect_chunks(source, plan)
        assert len(plan.chunks) == 3
        assert len({part.snapshot for part in plan.chunks}) == len(fake.jobs) == 1
        assert sorted(table["id"].to_pylist()) == numbers["id"].to_pylist()

    @pytest.mark.parametrize(("rows", "chunks"), [(100, 1), (99, 2), (10, 10), (9, 10)])
    async def test_rows_count_where_they_are_asked_for(
        self, fake: BigQueryFake, rows: int, chunks: int
    ) -> None:
        fake.load("numbers", pa.table({"id": pa.array(range(100), pa.int64())}))
        async with source_of(fake) as source:
            plan = await source.plan(ROWS, Limits(chunk_bytes=1, chunk_rows=rows, max_chunks=10))
        assert len(plan.chunks) == chunks

    async def test_a_plan_of_one_chunk_runs_nothing(
        self, fake: BigQueryFake, numbers: pa.Table
    ) -> None:
        async with source_of(fake) as source:
            plan = await source.plan(ROWS, Limits(max_chunks=1))
            assert fake.jobs == {}
            assert await collect_chunks(source, plan) == numbers

    @pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL])
    async def test_a_broken_stream_goes_on_at_its_row(
        self, fake: BigQueryFake, numbers: pa.Table, code: grpc.StatusCode
    ) -> None:
        fake.breaks = [(3, code), (0, code), (5, code)]
        async with source_of(fake) as source:
            assert await collect(source, ROWS) == numbers
        assert [offset for _, offset in fake.calls] == [0, 300, 300, 800]

    async def test_a_stream_that_breaks_without_end_is_unavailable(
        self, fake: BigQueryFake, numbers: pa.Table, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(streams, "_FIRST_DELAY", 0.001)
        fake.breaks = [(0, grpc.StatusCode.UNAVAILABLE)] * 99
        async with source_of(fake) as source:
            with pytest.raises(SourceUnavailable, match="broke off"):
                await collect(source, ROWS)
        assert len(fake.calls) == 7
        assert numbers.num_rows == 1000

    async def test_a_stream_that_falls_silent_is_unavailable_and_cancelled(
        self, fake: BigQueryFake, numbers: pa.Table
    ) -> None:
        fake.breaks = [(3, None)]
        async with source_of(fake, silence_seconds=0.3) as source:
            with pytest.raises(SourceUnavailable, match="silent"):
                await collect(source, ROWS)
            await freed(BigQuerySubject(fake))
        assert numbers.num_rows == 1000

    async def test_a_stream_that_never_began_can_be_left(
        self, fake: BigQueryFake, numbers: pa.Table
    ) -> None:
        fake.breaks = [(0, None)]
        subject = BigQuerySubject(fake)
        async with source_of(fake) as source:
            task = asyncio.create_task(collect(source, ROWS))
            await started(subject)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 5)
            await freed(subject)
        assert numbers.num_rows == 1000

    async def test_an_expired_session_is_a_lost_snapshot(
        self, fake: BigQueryFake, numbers: pa.Table
    ) -> None:
        async with source_of(fake) as source:
            plan = await source.plan(ROWS, Limits(chunk_bytes=numbers.nbytes // 2))
            fake.sessions.clear()
            with pytest.raises(SnapshotLost, match="expired"):
                await anext(source.stream(travelled(plan.chunks[0])))

    async def test_a_storage_api_that_is_down_is_unavailable(
        self, fake: BigQueryFake, numbers: pa.Table, unused_tcp_port: int
    ) -> None:
        async with source_of(
            fake, storage_endpoint=f"http://127.0.0.1:{unused_tcp_port}"
        ) as source:
            with pytest.raises(SourceUnavailable):
                await collect(source, ROWS)
        assert numbers.num_rows == 1000


class TestJobs:
    @pytest.mark.parametrize("misdeed", ["reset", "torn", "status"])
    async def test_a_lost_answer_does_not_run_the_query_twice(
        self, fake: BigQueryFake, numbers: pa.Table, misdeed: Any
    ) -> None:
        fake.faults.append(Fault(misdeed=misdeed, method="POST", path=JOBS, skip=1))
        async with source_of(fake) as source:
            assert await collect(source, ROWS) == numbers
        assert len(fake.jobs) == 1

    async def test_a_job_is_cancelled_when_bigquery_falls_silent(
        self, fake: BigQueryFake, numbers: pa.Table
    ) -> None:
        fake.faults.append(Fault(misdeed="hang", path=QUERIES, times=99))
        async with source_of(fake, request_timeout=0.3, retry_seconds=0.2) as source:
            with pytest.raises(SourceUnavailable):
                await collect_batches(source, ROWS)
        assert [job.cancelled for job in fake.jobs.values()] == [True]
        assert numbers.num_rows == 1000

    @pytest.mark.parametrize(
        ("reason", "kind"),
        [
            ("invalidQuery", SourceQueryError),
            ("accessDenied", SourceRefused),
            ("quotaExceeded", SourceUnavailable),
            ("resourcesExceeded", SourceQueryError),
            ("backendError", SourceUnavailable),
        ],
    )
    async def test_a_jobs_error_is_told(
        self, fake: BigQueryFake, numbers: pa.Table, reason: str, kind: type[PenstockError]
    ) -> None:
        fake.job_errors[ROWS] = {"reason": reason, "message": f"it is {reason}"}
        async with source_of(fake) as source:
            with pytest.raises(kind, match=f"it is {reason}"):
                await collect_batches(source, ROWS)
        assert numbers.num_rows == 1000

    async def test_a_cancelled_plan_cancels_its_job(self, fake: BigQueryFake) -> None:
        subject = BigQuerySubject(fake)
        async with source_of(fake) as source:
            task = asyncio.create_task(source.plan(subject.endless, Limits()))
            await started(subject)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await freed(subject)

    async def test_settings_and_trace_reach_the_job(
        self, fake: BigQueryFake, numbers: pa.Table
    ) -> None:
        async with (
            source_of(fake, maximum_bytes_billed=10**9) as source,
            aclosing(source.stream(chunk(ROWS), trace="Job 7/2")) as batches,
        ):
            await anext(batches)
        [job] = fake.jobs.values()
        sent = job.document["configuration"]
        assert sent["labels"] == {"penstock": "job-7-2"}
        assert sent["query"]["maximumBytesBilled"] == "1000000000"
        assert sent["query"]["defaultDataset"] == {"projectId": PROJECT, "datasetId": DATASET}
        assert numbers.num_rows == 1000


@pytest.fixture(scope="module")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encoding, kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, kind, serialization.NoEncryption()).decode()


def key_file(key: str, uri: str, **changes: str) -> str:
    account = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "k1",
        "private_key": key,
        "client_email": "reader@lake-123.iam.gserviceaccount.com",
        "token_uri": uri,
    }
    return json.dumps({**account, **changes})


class TestCredentials:
    async def test_a_service_accounts_token_opens_both_doors(
        self, fake: BigQueryFake, private_key: str
    ) -> None:
        fake.needs_token = True
        secrets = {"service_account": key_file(private_key, f"{fake.url}/token")}
        async with open_source("bigquery", config_of(fake), secrets) as source:
            assert PROJECT in await source.test()
        assert sum(request.path == "/token" for request in fake.requests) == 1

    async def test_without_a_token_we_are_refused(self, fake: BigQueryFake) -> None:
        fake.needs_token = True
        async with source_of(fake) as source:
            with pytest.raises(SourceRefused, match="invalid authentication"):
                await source.test()

    @pytest.mark.parametrize(
        ("misdeed", "kind"), [("status", SourceRefused), ("reset", SourceUnavailable)]
    )
    async def test_a_token_that_is_not_given_is_told_without_the_key(
        self, fake: BigQueryFake, private_key: str, misdeed: Any, kind: type[PenstockError]
    ) -> None:
        fault = Fault(misdeed=misdeed, method="POST", path="/token", status=400, times=99)
        fake.faults.append(fault)
        secrets = {"service_account": key_file(private_key, f"{fake.url}/token")}
        async with open_source("bigquery", config_of(fake), secrets) as source:
            with pytest.raises(kind) as refused:
                await source.test()
        assert "PRIVATE" not in told(refused.value)
        assert "assertion" not in told(refused.value)

    @pytest.mark.parametrize(
        "changes",
        [
            {"type": "external_account"},
            {"token_uri": "https://example.com/token"},
            {"token_uri": "http://oauth2.googleapis.com/token"},
            {"private_key": "s3cret"},
        ],
    )
    def test_another_kind_of_key_is_refused_and_never_shown(
        self, private_key: str, changes: dict[str, str]
    ) -> None:
        text = key_file(private_key, "https://oauth2.googleapis.com/token", **changes)
        with pytest.raises(InvalidInput) as refused:
            open_source("bigquery", {"project": PROJECT}, {"service_account": text})
        assert "s3cret" not in told(refused.value)
        assert "PRIVATE" not in told(refused.value)

    @pytest.mark.parametrize(
        "url", ["https://example.com", "http://bigquery.googleapis.com", "https://u:p@localhost"]
    )
    def test_a_token_goes_to_google_or_to_this_machine(self, url: str) -> None:
        for name in ("rest_endpoint", "storage_endpoint"):
            with pytest.raises(InvalidInput):
                open_source("bigquery", {"project": PROJECT, name: url}, {})

    async def test_a_bigquery_that_is_down_is_unavailable(
        self, fake: BigQueryFake, unused_tcp_port: int
    ) -> None:
        down = f"http://127.0.0.1:{unused_tcp_port}"
        async with source_of(fake, rest_endpoint=down, retry_seconds=0) as source:
            with pytest.raises(SourceUnavailable):
                await source.test()


async def test_the_catalog_shows_tables_columns_and_keys(fake: BigQueryFake) -> None:
    fake.load(
        "pet",
        pa.table(
            {"id": [1], "owner": [1], "price": pa.array([Decimal("1.00")], pa.decimal128(5, 2))}
        ),
    )
    fake.declared["pet"] = {
        "tableConstraints": {
            "primaryKey": {"columns": ["id"]},
            "foreignKeys": [
                {
                    "referencedTable": {"tableId": "person"},
                    "columnReferences": [{"referencingColumn": "owner", "referencedColumn": "id"}],
                }
            ],
        }
    }
    async with source_of(fake, dataset=None) as source:
        tables = await source.catalog.tables()
        columns = await source.catalog.columns(Table(catalog=PROJECT, schema=DATASET, name="pet"))
        keys = await source.catalog.keys(PROJECT, DATASET)
    assert [(table.schema, table.name) for table in tables] == [("other", "pet"), (DATASET, "pet")]
    assert [(column.name, column.data_type) for column in columns] == [
        ("id", "INTEGER"),
        ("owner", "INTEGER"),
        ("price", "NUMERIC(5, 2)"),
    ]
    assert [(key.columns, key.references) for key in keys] == [
        (("id",), None),
        (("owner",), "person"),
    ]


def test_an_absent_driver_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("penstock.sources.bigquery")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "google.cloud.bigquery_storage_v1", None)
    with pytest.raises(DriverMissing, match="bigquery_storage") as missing:
        open_source("bigquery", {"project": PROJECT}, {})
    assert missing.value.hint == "pip install 'penstock[bigquery]'"
