"""`penstock export`, from real sources into real storage."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import asyncpg
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import structlog

from penstock.cli import app, output
from penstock.storage.manifest import Manifest, read_manifest
from penstock.storage.object_store import StoreOptions, open_store
from tests.graphs.deployment import postgres_secrets
from tests.servers.weed import weed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEADLINE = 60
PEAK = """
import atexit, pathlib, sys
from penstock.cli import main
def write_peak():
    status = pathlib.Path("/proc/self/status").read_text()
    [line] = [l for l in status.splitlines() if l.startswith("VmHWM")]
    pathlib.Path(sys.argv[1]).write_text(line.split()[1])
atexit.register(write_peak)
main(sys.argv[2:])
"""


@pytest.fixture(autouse=True)
def log_settings() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            "CREATE TABLE orders (id BIGINT, amount DECIMAL(12, 2), name VARCHAR, nothing INTEGER)"
        )
        connection.execute(
            "INSERT INTO orders SELECT i, i / 4, 'c' || i, NULL FROM range(1000) t(i)"
        )
    return file


def export(sql: str, source: object, to: object, *more: str) -> int:
    return output.guarded(app, ["export", sql, "--source", str(source), "--to", str(to), *more])


def result(place: str, options: StoreOptions | None = None) -> Manifest:
    return asyncio.run(read_manifest(open_store(place, options=options), ""))


def told(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


def test_a_query_becomes_parquet_with_exact_types_and_a_manifest(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "new" / "folder"
    assert (
        export("SELECT * FROM orders WHERE id < 10 ORDER BY id", f"duckdb:{shop}", to, "--json")
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert (document["rows"], len(document["parts"]), document["place"]) == (10, 1, f"file://{to}")
    table = pq.read_table(to / document["parts"][0]["path"])
    assert [(f.name, f.type) for f in table.schema] == [
        ("id", pa.int64()),
        ("amount", pa.decimal128(12, 2)),
        ("name", pa.string()),
        ("nothing", pa.int32()),
    ]
    assert table["amount"][1].as_py() == Decimal("0.25")
    manifest = result(str(to))
    assert (manifest.rows, [p.path for p in manifest.parts]) == (10, [document["parts"][0]["path"]])
    assert sorted(p.name for p in to.iterdir()) == sorted(
        [document["parts"][0]["path"], "manifest.json"]
    )


def test_a_query_without_rows_still_has_its_schema(shop: Path, tmp_path: Path) -> None:
    assert export("SELECT id, name FROM orders WHERE id < 0", shop, tmp_path / "out") == 0
    [part] = result(str(tmp_path / "out")).parts
    assert pq.read_schema(tmp_path / "out" / part.path).names == ["id", "name"]


def test_files_and_folders_are_sources(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export("SELECT id, name FROM orders", shop, tmp_path / "first") == 0
    [part] = result(str(tmp_path / "first")).parts
    (tmp_path / "lake").mkdir()
    (tmp_path / "first" / part.path).rename(tmp_path / "lake" / "orders.parquet")
    (tmp_path / "names.csv").write_text("id,name\n1,ann\n2,bob\n")
    assert export("SELECT count(*) AS n FROM orders", tmp_path / "lake", tmp_path / "second") == 0
    assert export("SELECT name FROM names", tmp_path / "names.csv", tmp_path / "third") == 0
    assert result(str(tmp_path / "third")).rows == 2
    assert "2 rows" in capsys.readouterr().out


def test_a_place_that_holds_a_result_is_not_written_over(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export("SELECT 1 AS a FROM orders", shop, tmp_path / "out") == 0
    before = result(str(tmp_path / "out"))
    assert export("SELECT 2 AS a FROM orders", shop, tmp_path / "out") == 4
    assert "never written over" in told(capsys)
    assert result(str(tmp_path / "out")) == before


@pytest.mark.parametrize(
    ("sql", "code", "says"),
    [
        ("DROP TABLE orders", 2, "DROP is not allowed"),
        ("SELECT * FROM orders; SELECT 1", 2, "2 statements"),
        ("SELECT * FROM read_csv('/etc/passwd')", 2, "read_csv"),
        ("SELECT * FROM nothing", 2, "nothing"),
        ("SELECT id AS a, name AS a FROM orders", 2, "a"),
    ],
)
def test_a_query_that_is_refused_leaves_nothing_behind(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], sql: str, code: int, says: str
) -> None:
    assert export(sql, shop, tmp_path / "a" / "b") == code
    assert says in told(capsys)
    assert not (tmp_path / "a").exists()


def test_a_query_that_fails_on_the_way_leaves_nothing_behind(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("kept")
    sql = "SELECT CAST(CASE WHEN id < 999 THEN '1' ELSE 'x' END AS INTEGER) AS n FROM orders"
    assert export(sql, shop, tmp_path / "out") == 2
    assert "Conversion" in told(capsys)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_a_place_that_cannot_be_written_is_named(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export("SELECT 1 AS a FROM orders", shop, shop / "below") == 2
    assert "cannot be written to" in told(capsys)
    assert export("SELECT 1 AS a FROM orders", shop, "ftp://x/y") == 2
    assert "no storage driver" in told(capsys)


def test_a_source_that_is_away_or_refuses_has_its_own_exit_code(
    database: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_SOURCE_PASSWORD", "canary-hunter2")
    assert export("SELECT 1 AS a", "postgresql://ann@127.0.0.1:1/x", tmp_path / "out") == 5
    stranger = database.partition("&passfile=")[0].replace("user=penstock", "user=nobody")
    assert export("SELECT 1 AS a", stranger, tmp_path / "out") == 4
    assert "canary-hunter2" not in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@contextmanager
def running(folder: Path, sql: str, source: str) -> Iterator[subprocess.Popen[str]]:
    url, _, _ = source.partition("&passfile=")
    command = [
        sys.executable,
        "-m",
        "penstock.cli",
        "export",
        sql,
        "--source",
        url,
        "--to",
        str(folder),
    ]
    environment = {**os.environ, "PENSTOCK_SOURCE_PASSWORD": postgres_secrets(source)["password"]}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def _active(dsn: str) -> int:
    connection = await asyncpg.connect(dsn)
    try:
        count: int = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = "
            "'active' AND application_name LIKE 'penstock export%'"
        )
        return count
    finally:
        await connection.close()


def until(condition: Any) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


async def _fill(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        "CREATE TABLE numbers AS SELECT i, repeat('x', 100) || i AS s FROM generate_series(1, "
        "20000) i"
    )
    await connection.close()


@pytest.mark.parametrize(
    ("sql", "sign"),
    [
        ("SELECT count(*) AS n FROM numbers a, numbers b, numbers c", signal.SIGINT),
        ("SELECT md5(a.s || b.s) AS h FROM numbers a, numbers b", signal.SIGTERM),
    ],
)
def test_an_interrupt_cancels_the_query_and_leaves_nothing_behind(
    warehouse: str, tmp_path: Path, sql: str, sign: signal.Signals
) -> None:
    asyncio.run(_fill(warehouse))
    with running(tmp_path / "out", sql, warehouse) as process:
        flowing = "md5" in sql
        until(
            lambda: (
                any((tmp_path / "out").glob("*")) if flowing else asyncio.run(_active(warehouse))
            )
        )
        process.send_signal(sign)
        _, stderr = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    assert "Interrupted" in stderr
    assert "Traceback" not in stderr
    assert not (tmp_path / "out").exists()
    until(lambda: asyncio.run(_active(warehouse)) == 0)


def test_memory_is_flat_in_the_rows(tmp_path: Path) -> None:
    file, peak = tmp_path / "big.duckdb", tmp_path / "peak"
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i, repeat('x', 100) || i AS s FROM range(1500) r(i)"
        )
    sql = "SELECT a.i, b.i AS j, a.s, b.s AS t FROM t a, t b"
    arguments = ["export", sql, "--source", str(file), "--to", str(tmp_path / "out"), "--json"]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(peak), *arguments], capture_output=True, check=True
    )
    assert json.loads(done.stdout)["rows"] == 2_250_000
    assert int(peak.read_text()) < 500_000


def test_s3_is_a_place_and_a_source(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "weed").mkdir()
    with weed(tmp_path / "weed", "exports") as (server, _):
        until(server.ready)
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.access_key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.secret_key)
        assert export("SELECT id, name FROM orders", shop, "s3://exports/a/orders") == 0
        assert export("SELECT 1 AS a FROM orders", shop, "s3://exports/a/orders") == 4
        assert (
            export(
                "SELECT max(id) AS top FROM orders", "s3://exports/a", tmp_path / "back", "--json"
            )
            == 0
        )
        assert server.secret_key not in "".join(capsys.readouterr())
    [part] = result(str(tmp_path / "back")).parts
    assert pq.read_table(tmp_path / "back" / part.path).to_pylist() == [{"top": 999}]


def test_the_commands_are_registered_and_load_nothing_of_the_server() -> None:
    code = (
        "import sys; from penstock.cli import app; print([m for m in sys.modules if 'pyarrow' in "
        "m or 'asyncpg' in m])"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, env=os.environ
    )
    assert completed.stdout.strip() == "[]"
    assert {"export", "rekey"} <= set(app)
