from __future__ import annotations

import datetime as dt
import gzip
import io
import sys
import threading
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from penstock.kit.errors import InvalidInput
from penstock.sources.contract import FileSource, Limits, Table
from penstock.sources.errors import (
    DriverMissing,
    SourceError,
    SourceQueryError,
    SourceRefused,
    SourceUnavailable,
)
from penstock.sources.registry import open_source
from tests.sources.capability_conformance import FileConformance
from tests.sources.conformance import collect, collect_batches, collect_chunks, told
from tests.storage.conftest import gcs, remote, s3  # noqa: F401 - fixtures

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.sources.contract import Source
    from tests.storage.conftest import Place


class FilesSubject:
    kind = "files"
    endless = "SELECT sum(a.range * b.range) AS n FROM range(10000000) a, range(10000000) b"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config: dict[str, object] = {"url": folder.as_uri()}
        self.secrets: dict[str, str] = {}

    async def load(self, name: str, table: pa.Table) -> None:
        pq.write_table(table, self.folder / f"{name}.parquet", row_group_size=2000)

    async def many(self, rows: int) -> str:
        """Parquet in row groups as large as the table, which is how careless writers make them."""
        numbers = pc.cast(pa.array(range(rows)), pa.string())
        table = pa.table({"i": range(rows), "s": pc.utf8_lpad(numbers, 190, "0")})
        pq.write_table(
            table, self.folder / f"many_{rows}.parquet", row_group_size=rows, compression="zstd"
        )
        return f"SELECT i, s AS text FROM many_{rows}"

    async def running(self) -> int:
        return sum(thread.name.startswith("source-files") for thread in threading.enumerate())

    def quote(self, name: str) -> str:
        return f'"{name}"'


class TestConformance(FileConformance):
    capabilities = frozenset({FileSource})

    @pytest.fixture
    async def subject(self, tmp_path: Path) -> FilesSubject:
        return FilesSubject(tmp_path)


def source_of(folder: Path, **config: object) -> Source:
    return open_source("files", {"url": folder.as_uri(), **config}, {})


async def rows_of(
    folder: Path, sql: str = "SELECT * FROM t", /, **config: object
) -> list[dict[str, object]]:
    async with source_of(folder, **config) as source:
        rows: list[dict[str, object]] = (await collect(source, sql)).to_pylist()
        return rows


TYPES = {
    "a": "int64",
    "b": "decimal(5,2)",
    "c": "date",
    "d": "timestamptz",
    "e": "bool",
    "f": "timestamp",
    "g": "double",
    "h": "string",
}
TYPED = (
    b"a,b,c,d,e,f,g,h,i\n"
    b"9223372036854775807,-999.99,2024-02-29,2024-01-01T10:00:00+02:00,true,"
    b'2024-01-01 10:00:00.123456,0.1,"",x\n'
    b",,,,,,,,\n"
)


async def test_declared_csv_columns_are_exact_and_the_others_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(TYPED)
    first, second = await rows_of(tmp_path, types={"t": TYPES})
    assert first == {
        "a": 2**63 - 1,
        "b": Decimal("-999.99"),
        "c": dt.date(2024, 2, 29),
        "d": dt.datetime(2024, 1, 1, 8, tzinfo=dt.UTC),
        "e": True,
        "f": dt.datetime(2024, 1, 1, 10, 0, 0, 123456),  # noqa: DTZ001
        "g": 0.1,
        "h": "",
        "i": "x",
    }
    assert set(second.values()) == {None}


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"a,b\n1,2\n", [("1", "2")]),
        (b"a;b\n1,5;2\n3,5;4\n", [("1,5", "2"), ("3,5", "4")]),
        (b"a\tb\n1\t2\n", [("1", "2")]),
        (b"a|b\n1|2\n", [("1", "2")]),
        (b'a,b\n"x, ""y""\nz",2\n', [('x, "y"\nz', "2")]),
        (b'a,b\r\n"x\r\ny",2\r\n', [("x\r\ny", "2")]),
        (b"\xef\xbb\xbfa,b\n1,2\n", [("1", "2")]),
        (b"a,b\n1,2", [("1", "2")]),
        (b"a,b\n\n1,2\n\n", [("1", "2")]),
        (b'a,b\nfive" pipe,2\n', [('five" pipe', "2")]),
        (b"a,b\n", []),
        (b"a,b", []),
    ],
)
async def test_csv_is_read_as_it_was_meant(
    tmp_path: Path, content: bytes, rows: list[tuple[str, str]]
) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    assert [tuple(row.values()) for row in await rows_of(tmp_path)] == rows
    assert await rows_of(tmp_path, "SELECT a AS x FROM t WHERE b = '2'") == [
        {"x": a} for a, b in rows if b == "2"
    ]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
async def test_other_encodings_are_declared(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "t.csv").write_bytes("name,größe\nZoë,1\n".encode(encoding))
    assert await rows_of(tmp_path, csv={"encoding": encoding}) == [{"name": "Zoë", "größe": "1"}]


async def test_gzip_and_files_without_a_header_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"1,x\n") + gzip.compress(b"2,y\n"))
    rows = await rows_of(
        tmp_path, csv={"header": False}, types={"t": {"id": "int32", "name": "string"}}
    )
    assert rows == [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}]


async def test_a_quote_that_is_never_closed_is_found_in_packed_files_too(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b'a,b\n1,"x\n2,y\n'))
    with pytest.raises(SourceQueryError, match="begins in line 2"):
        await rows_of(tmp_path)


@pytest.mark.parametrize(
    ("content", "config", "words"),
    [
        (b"a,b\n1,x\n", {"types": {"t": {"b": "int64"}}}, "int64"),
        (b"a,b\n1,1.234\n", {"types": {"t": {"b": "decimal(5,2)"}}}, "Decimal"),
        (b"a,b\n1,2024-01-01T00:00:00\n", {"types": {"t": {"b": "timestamptz"}}}, "zone"),
        (b"a,b\n1\n", {"csv": {"delimiter": ","}}, "columns"),
        (b"a,a\n1,2\n", {}, "more than one column named a"),
        (b"a,b\n1,2\n", {"types": {"t": {"c": "int64"}}}, "declares c"),
        ("a,b\nZoë,2\n".encode("latin-1"), {}, "UTF8"),
        (b"a,b\n" + b"x" * 200_000 + b",1\n", {"csv": {"block_bytes": 65536}}, "straddl"),
        (b'a,b\n1,2\n3,"x\n5,6\n', {}, "never closed, in the row that begins in line 3"),
        (b'a,b\n1,2\n3,"' + b"x" * 200_000, {}, "never closed, in the row that begins in line 3"),
        (
            b'a,b\n1,2\n3,"x"y\n',
            {},
            "text behind a closing quote, in the row that begins in line 3",
        ),
        (b'a,b\n1,""y\n', {}, "text behind a closing quote, in the row that begins in line 2"),
        (b"a\n1\n\n2\n", {}, "blank line, 3: in a file of one column"),
        (b'a,b\n1,2\n"3,4\n5,6\n', {"types": {"t": {"b": "int64"}}}, "columns|never closed"),
        (b"", {}, "no header"),
    ],
)
async def test_csv_that_does_not_fit_its_declaration_says_how(
    tmp_path: Path, content: bytes, config: dict[str, object], words: str
) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(SourceQueryError, match=words):
        await rows_of(tmp_path, **config)


async def test_a_late_value_that_does_not_fit_is_an_error_and_not_another_type(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.csv").write_bytes(b"a\n" + b"1\n" * 200_000 + b"oops\n")
    with pytest.raises(SourceQueryError, match="oops"):
        await rows_of(tmp_path, types={"t": {"a": "int64"}}, csv={"block_bytes": 65536})


def write(path: Path, table: pa.Table, **options: object) -> None:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table, path, **options)


async def test_a_folder_is_one_table_of_all_its_files(tmp_path: Path) -> None:
    write(tmp_path / "t" / "1.parquet", pa.table({"id": [1], "name": ["a"]}))
    write(tmp_path / "t" / "2.parquet", pa.table({"name": ["b"], "id": [2], "more": [3]}))
    write(tmp_path / "t" / "_SUCCESS.parquet", pa.table({"no": [1]}))
    (tmp_path / "readme.md").write_text("no table")
    async with source_of(tmp_path) as source:
        assert await source.catalog.tables() == [Table(catalog="files", schema="main", name="t")]
        columns = await source.catalog.columns(Table(catalog="files", schema="main", name="t"))
        assert [(c.name, c.data_type) for c in columns] == [("id", "int64"), ("name", "string")]
        assert await source.catalog.keys("files", "main") == []
    assert await rows_of(tmp_path) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


async def test_tables_can_be_declared_by_patterns(tmp_path: Path) -> None:
    write(tmp_path / "x" / "2024-a.parquet", pa.table({"id": [1]}))
    write(tmp_path / "x" / "2025-a.parquet", pa.table({"id": [2]}))
    write(tmp_path / "y" / "2024-a.parquet", pa.table({"id": [3]}))
    tables = {"old": "**/2024-*.parquet", "x": "x/*.parquet", "none": "*.parquet"}
    assert await rows_of(tmp_path, "SELECT id FROM old", tables=tables) == [{"id": 1}, {"id": 3}]
    assert await rows_of(tmp_path, "SELECT id FROM x", tables=tables) == [{"id": 1}, {"id": 2}]
    with pytest.raises(SourceQueryError, match="no file"):
        await rows_of(tmp_path, "SELECT id FROM none", tables=tables)


@pytest.mark.parametrize("other", [{"id": ["text"]}, {"name": [1]}])
async def test_a_file_with_other_columns_than_the_first_is_an_error(
    tmp_path: Path, other: dict[str, object]
) -> None:
    write(tmp_path / "t" / "1.parquet", pa.table({"id": [1]}))
    write(tmp_path / "t" / "2.parquet", pa.table(other))
    with pytest.raises(SourceError, match=r"2\.parquet"):
        await rows_of(tmp_path)


async def test_dictionaries_leave_as_their_values(tmp_path: Path) -> None:
    column = pa.array(["a", "b", "a"]).dictionary_encode()
    write(tmp_path / "t.parquet", pa.table({"c": column}))
    async with source_of(tmp_path) as source:
        assert (await collect(source, "SELECT * FROM t")).schema.field("c").type == pa.string()


async def test_chunks_are_spans_of_files_and_row_groups(tmp_path: Path) -> None:
    for number in range(3):
        ids = pa.array(range(number * 1000, number * 1000 + 1000), pa.int64())
        write(tmp_path / "t" / f"{number}.parquet", pa.table({"id": ids}), row_group_size=100)
    async with source_of(tmp_path) as source:
        plan = await source.plan("SELECT id FROM t", Limits(chunk_bytes=5000, max_chunks=5))
        assert len(plan.chunks) == 5
        assert sum(part.estimated_rows or 0 for part in plan.chunks) == 3000
        table = await collect_chunks(source, plan)
    assert table["id"].to_pylist() == list(range(3000))


async def test_a_file_that_changed_since_it_was_planned_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", pa.table({"id": [1, 2, 3]}))
    async with source_of(tmp_path) as source:
        plan = await source.plan("SELECT id FROM t", Limits())
        write(tmp_path / "t.parquet", pa.table({"id": [4]}))
        with pytest.raises(SourceUnavailable, match="changed"):
            await collect_chunks(source, plan)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (
            "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.id = b.id + 1 ORDER BY 1",
            [(2, 1), (3, 2)],
        ),
        ("WITH x AS (SELECT * FROM t) SELECT count(*) AS n FROM x, x AS y", [(9,)]),
        ("SELECT sum(id) AS total FROM t WHERE name <> 'b'", [(Decimal(4),)]),
        ("SELECT upper(name) AS big FROM t WHERE id = 2", [("B",)]),
        ("SELECT t.id, u.word FROM t, u WHERE t.id = u.id", [(1, "one")]),
        ("SELECT ID AS number FROM t WHERE Name = 'a'", [(1,)]),
        ("SELECT NAME FROM t", [("a",), ("b",), ("c",)]),
        ("SELECT count(*) AS n FROM t", [(3,)]),
    ],
)
async def test_any_query_works_over_files(
    tmp_path: Path, sql: str, rows: list[tuple[object, ...]]
) -> None:
    write(tmp_path / "t.parquet", pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}))
    (tmp_path / "u.csv").write_text("id,word\n1,one\n")
    actual = await rows_of(tmp_path, sql, types={"u": {"id": "int64"}})
    assert [tuple(row.values()) for row in actual] == rows


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "WITH x AS (COPY (SELECT 1) TO '/tmp/out.csv') SELECT * FROM x",
        "SELECT * FROM glob('/etc/*')",
        'SELECT * FROM "../secret"',
        "SELECT * FROM linked",
        "SELECT x FROM linked WHERE x = 'a'",
    ],
)
async def test_nothing_outside_the_folder_is_in_reach(tmp_path: Path, sql: str) -> None:
    (tmp_path / "secret.csv").write_text("x\nsecret\n")
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "linked.csv").symlink_to(tmp_path / "secret.csv")
    with pytest.raises((SourceQueryError, SourceRefused)):
        await rows_of(folder, sql)


async def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and then nothing of the kind PAR1")
    with pytest.raises((SourceError, SourceQueryError), match=r"t\.parquet"):
        await rows_of(tmp_path)


async def test_an_error_in_a_file_keeps_its_meaning_through_duckdb(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\nx\n")
    with pytest.raises(SourceQueryError, match=r"t\.csv.*int64"):
        await rows_of(tmp_path, "SELECT a + 1 AS b FROM t", types={"t": {"a": "int64"}})


async def test_without_duckdb_columns_can_still_be_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "t.parquet", pa.table({"id": [1], "name": ["a"]}))
    for module in [name for name in sys.modules if name.startswith("penstock.sources.embedded")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert await rows_of(tmp_path, "SELECT name AS n FROM t") == [{"n": "a"}]
    with pytest.raises(DriverMissing, match="duckdb"):
        await rows_of(tmp_path, "SELECT id + 1 AS n FROM t")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"url": "ftp://x/y"}, "ftp"),
        ({"url": "s3://key:secret@bucket/x"}, "credentials"),
        ({"types": {"t": {"a": "integer"}}}, r"types\.t\.a"),
        ({"types": {"t": {"a": "decimal(50,2)"}}}, "decimal"),
        ({"csv": {"encoding": "klingon"}}, "klingon"),
        ({"csv": {"delimiter": "ab"}}, "delimiter"),
    ],
)
def test_a_wrong_configuration_is_named(
    tmp_path: Path, config: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        source_of(tmp_path, **config)


def at(place: Place) -> tuple[dict[str, object], dict[str, str]]:
    options = place.options
    config: dict[str, object] = {
        "url": place.url,
        "endpoint": options.endpoint,
        "allow_http": True,
        "retry_seconds": 0.2,
    }
    secrets = {
        name: value
        for name in ("access_key_id", "secret_access_key", "bearer_token")
        if (value := getattr(options, name))
    }
    return config, secrets


async def test_objects_in_s3_and_gcs_are_tables_like_files(remote: Place) -> None:  # noqa: F811
    out = io.BytesIO()
    pq.write_table(
        pa.table({"id": range(10_000), "name": ["x" * 100] * 10_000}), out, row_group_size=1000
    )
    store = remote.open()
    await store.create("big/part-1.parquet", out.getvalue())
    await store.create("words.csv.gz", gzip.compress(b"id;word\n1;one\n"))
    async with open_source("files", *at(remote)) as source:
        assert [table.name for table in await source.catalog.tables()] == ["big", "words"]
        plan = await source.plan("SELECT id FROM big", Limits(chunk_bytes=10_000, max_chunks=4))
        assert len(plan.chunks) == 4
        assert (await collect_chunks(source, plan))["id"].to_pylist() == list(range(10_000))
        joined = await collect(
            source, "SELECT b.id, w.word FROM big b JOIN words w ON b.id = w.id::BIGINT"
        )
        assert joined.to_pylist() == [{"id": 1, "word": "one"}]


async def test_a_wrong_key_is_refused_and_never_shown(remote: Place) -> None:  # noqa: F811
    config, secrets = at(remote)
    wrong = dict.fromkeys(secrets, "hunter2-is-wrong")
    with pytest.raises(SourceRefused) as refused:
        await open_source("files", config, wrong).test()
    assert "hunter2" not in told(refused.value)


async def test_storage_that_is_down_is_unavailable(remote: Place, unused_tcp_port: int) -> None:  # noqa: F811
    config, secrets = at(remote)
    down = {**config, "endpoint": f"http://127.0.0.1:{unused_tcp_port}"}
    with pytest.raises(SourceUnavailable):
        await collect_batches(open_source("files", down, secrets), "SELECT * FROM t")
