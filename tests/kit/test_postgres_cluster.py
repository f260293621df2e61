from __future__ import annotations

import asyncio
import socket
import stat
from typing import TYPE_CHECKING

import asyncpg
import psutil
import pytest

from penstock.kit.postgres import (
    Binaries,
    Cluster,
    ClusterSettings,
    PostgresFailed,
    Shutdown,
    Tcp,
    detached,
)
from penstock.kit.postgres import database as embedded
from penstock.kit.postgres.password import read_password
from penstock.wiring.settings import Settings
from tests.kit.conftest import execute, until, value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

IN_FORCE = {
    "autovacuum_naptime": "10s",
    "fsync": "on",
    "full_page_writes": "on",
    "idle_in_transaction_session_timeout": "1min",
    "listen_addresses": "",
    "max_wal_size": "2GB",
    "server_encoding": "UTF8",
    "shared_buffers": "256MB",
    "synchronous_commit": "on",
    "unix_socket_permissions": "0700",
}


async def test_a_first_start_leaves_a_server_as_we_want_it(
    folder: Path, binaries: Binaries
) -> None:
    async with Cluster(folder / "pg", binaries) as cluster:
        assert await value(cluster.dsn(), "SELECT current_database()") == "penstock"
        assert (
            await value(cluster.dsn(), "SELECT split_part(version(), ' ', 2)") == binaries.version
        )
        settings = {name: await value(cluster.dsn(), f"SHOW {name}") for name in IN_FORCE}
        assert settings == IN_FORCE


async def test_rows_outlive_every_way_of_stopping(
    prepared: Callable[[Binaries], Awaitable[Path]], binaries: Binaries
) -> None:
    async with Cluster(await prepared(binaries), binaries) as cluster:
        await execute(cluster.dsn(), "DROP TABLE IF EXISTS said; CREATE TABLE said (body text)")
        for how in Shutdown:
            await execute(cluster.dsn(), f"INSERT INTO said VALUES ('{how.name}')")
            await cluster.restart(how)
        assert (
            await value(cluster.dsn(), "SELECT string_agg(body, ' ') FROM said")
            == "FAST IMMEDIATE KILL"
        )


async def test_only_the_servers_account_can_reach_the_socket(cluster: Cluster) -> None:
    for private in (cluster.places.folder, cluster.places.sockets, cluster.places.data):
        status = private.stat()
        assert stat.S_IMODE(status.st_mode) == 0o700
        assert status.st_uid == cluster.places.account.uid


@pytest.fixture
def moved(data_dir: Path, folder: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The prepared cluster under another name, for a while."""
    yield data_dir.rename(folder / request.param)
    (folder / request.param).rename(data_dir)


@pytest.mark.parametrize(
    "moved",
    ["x" * 150, "with,comma", "white space", 'quo"te', "ünï", "per%cent&and?"],
    indirect=True,
)
async def test_any_path_will_do_and_data_may_be_moved(moved: Path, newest: Binaries) -> None:
    async with Cluster(moved, newest) as cluster:
        assert await value(cluster.dsn(), "SELECT 1") == 1
        assert stat.S_IMODE(cluster.places.sockets.stat().st_mode) == 0o700
    if not cluster.places.sockets.is_relative_to(moved):
        cluster.places.sockets.rmdir()


async def test_a_socket_folder_that_somebody_prepared_for_us_is_refused(
    folder: Path, newest: Binaries
) -> None:
    cluster = Cluster(folder / ("x" * 150), newest)
    cluster.places.sockets.symlink_to(folder)
    try:
        with pytest.raises(PostgresFailed, match="does not belong to"):
            await cluster.start()
    finally:
        cluster.places.sockets.unlink()


async def test_the_environment_cannot_lead_the_server_or_its_clients_astray(
    data_dir: Path, newest: Binaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, misleading in {
        "PGPORT": "1",
        "PGHOST": "nowhere",
        "PGUSER": "nobody",
        "PGDATA": "/nowhere",
    }.items():
        monkeypatch.setenv(name, misleading)
    async with Cluster(data_dir, newest) as cluster:
        assert await value(cluster.dsn(), "SELECT current_user::text") == "penstock"


async def test_a_port_and_the_socket_ask_for_the_password(data_dir: Path, newest: Binaries) -> None:
    async with Cluster(
        data_dir, newest, settings=ClusterSettings(tcp=Tcp(port=_free_port()))
    ) as cluster:
        assert await value(cluster.dsn(), "SELECT 1") == 1
        assert await value(cluster.tcp_dsn(), "SELECT host(inet_server_addr())") == "127.0.0.1"
        secret = read_password(cluster.places)
        for wrong in (cluster.tcp_dsn().replace(secret, "guessed"), _without_password(cluster)):
            with pytest.raises(asyncpg.InvalidPasswordError):
                await asyncpg.connect(wrong)
    assert secret not in cluster.dsn()
    assert secret not in cluster.places.log.read_text()


async def test_nobody_is_let_in_without_the_password(cluster: Cluster) -> None:
    query = "SELECT string_agg(DISTINCT auth_method, ' ') FROM pg_hba_file_rules"
    assert await value(cluster.dsn(), query) == "scram-sha-256"
    assert await value(cluster.dsn(), "SHOW hba_file") == str(cluster.places.rules)
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(_without_password(cluster))


async def test_the_password_is_the_accounts_alone_and_every_cluster_has_its_own(
    cluster: Cluster, folder: Path, newest: Binaries
) -> None:
    status = cluster.places.password.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o600, cluster.places.account.uid)
    async with Cluster(folder / "pg", newest) as other:
        assert read_password(other.places) != read_password(cluster.places)
        assert len(read_password(other.places)) >= 40


async def test_the_password_stays_over_restarts(cluster: Cluster) -> None:
    before = read_password(cluster.places)
    await cluster.stop()
    await cluster.start()
    assert read_password(cluster.places) == before


async def test_a_cluster_of_an_earlier_version_that_trusted_everybody_asks_from_its_next_start_on(
    folder: Path, binaries: Binaries
) -> None:
    async with Cluster(folder / "pg", binaries) as cluster:
        await execute(cluster.dsn(), "CREATE TABLE note AS SELECT 7 AS body")
        await execute(cluster.dsn(), "ALTER ROLE penstock PASSWORD NULL")
    cluster.places.rules.write_text(
        "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
    )
    cluster.places.password.unlink()
    async with Cluster(folder / "pg", binaries) as cluster:
        assert await value(cluster.dsn(), "SELECT body FROM note") == 7
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(_without_password(cluster))
        assert "trust" not in cluster.places.rules.read_text()


async def test_a_start_that_was_killed_before_the_password_was_written_down_makes_another(
    folder: Path, newest: Binaries
) -> None:
    async with Cluster(folder / "pg", newest) as cluster:
        lost = read_password(cluster.places)
    cluster.places.password.rename(cluster.places.password.with_suffix(".new"))
    async with Cluster(folder / "pg", newest) as cluster:
        assert await value(cluster.dsn(), "SELECT 1") == 1
        assert read_password(cluster.places) != lost


async def test_a_password_of_other_data_is_an_error_with_the_way_out(
    folder: Path, newest: Binaries
) -> None:
    async with Cluster(folder / "pg", newest) as cluster:
        pass
    cluster.places.password.write_text("*:*:*:penstock:of-other-data\n")
    with pytest.raises(PostgresFailed, match="is not the one of these data") as refusal:
        await Cluster(folder / "pg", newest).start()
    assert refusal.value.hint == f"Let the next start make a new one: rm {cluster.places.password}"
    cluster.places.password.unlink()
    async with Cluster(folder / "pg", newest) as cluster:
        assert await value(cluster.dsn(), "SELECT 1") == 1


async def test_a_port_in_use_is_said_in_a_sentence(data_dir: Path, newest: Binaries) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        tcp = Tcp(port=taken.getsockname()[1])
        with pytest.raises(PostgresFailed, match="port that PostgreSQL should listen on is in use"):
            await Cluster(data_dir, newest, settings=ClusterSettings(tcp=tcp)).start()


async def test_without_a_port_there_is_no_address_to_hand_out(cluster: Cluster) -> None:
    with pytest.raises(PostgresFailed, match="listens on no port"):
        cluster.tcp_dsn()


async def test_a_setting_that_postgresql_refuses_is_quoted(
    data_dir: Path, newest: Binaries
) -> None:
    settings = ClusterSettings(server={"shared_buffers": "plenty"})
    with pytest.raises(
        PostgresFailed, match='FATAL:  invalid value for parameter "shared_buffers"'
    ):
        await Cluster(data_dir, newest, settings=settings).start()


async def test_data_of_another_major_are_named_before_a_server_touches_them(
    cluster: Cluster, oldest: Binaries
) -> None:
    await cluster.stop()
    with pytest.raises(
        PostgresFailed, match=f"are of PostgreSQL 18, the programs of {oldest.version}"
    ):
        await Cluster(cluster.places.folder, oldest).start()


async def test_a_start_that_is_cancelled_leaves_nothing_behind(
    folder: Path, newest: Binaries
) -> None:
    cluster = Cluster(folder / "pg", newest)
    starting = asyncio.create_task(cluster.start())
    await until((folder / "pg" / "data.new").exists)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    async with cluster:
        assert await value(cluster.dsn(), "SELECT 1") == 1


async def test_a_frozen_server_is_killed_in_the_end(data_dir: Path, newest: Binaries) -> None:
    settings = ClusterSettings(stop_seconds=0.2)
    async with Cluster(data_dir, newest, settings=settings) as cluster:
        frozen = _process(cluster)
        frozen.suspend()
    assert not frozen.is_running()


async def test_a_supervisor_notices_that_its_server_ended(cluster: Cluster) -> None:
    ended = asyncio.create_task(cluster.wait())
    _process(cluster).kill()
    assert await asyncio.wait_for(ended, 10) == -9
    assert cluster.pid is None
    await cluster.restart()
    assert await value(cluster.dsn(), "SELECT 1") == 1


async def test_a_log_that_has_grown_large_is_put_aside(cluster: Cluster) -> None:
    with cluster.places.log.open("ab") as written:
        written.truncate(17 << 20)
    await cluster.restart()
    assert cluster.places.log.stat().st_size < 1 << 20
    assert cluster.places.log.with_suffix(".log.1").stat().st_size >= 17 << 20


async def test_a_database_that_is_given_is_taken(folder: Path, database: str) -> None:
    async with embedded(Settings(home=folder, database_url=database)) as dsn:
        assert dsn == database
    assert _is_empty(folder)


async def test_without_one_a_server_runs_for_as_long_as_it_is_needed(
    folder: Path, data_dir: Path
) -> None:
    (folder / "postgres").symlink_to(data_dir)
    async with embedded(Settings(home=folder)) as dsn:
        assert await value(dsn, "SELECT current_database()") == "penstock"
    with pytest.raises(FileNotFoundError):
        await asyncpg.connect(dsn)


async def test_data_keep_the_major_that_wrote_them(
    folder: Path, prepared: Callable[[Binaries], Awaitable[Path]], oldest: Binaries
) -> None:
    (folder / "postgres").symlink_to(await prepared(oldest))
    async with embedded(Settings(home=folder)) as dsn:
        assert str(await value(dsn, "SHOW server_version")).startswith("15.")


async def test_a_detached_server_outlives_its_starter_until_it_is_stopped(data_dir: Path) -> None:
    dsn = await detached.start(data_dir)
    try:
        assert await value(dsn, "SELECT 1") == 1
        with pytest.raises(
            PostgresFailed, match=r"held by process \d+ .* -m penstock.kit.postgres run"
        ):
            await detached.start(data_dir)
    finally:
        assert await detached.stop(data_dir)
    assert not await detached.stop(data_dir)


def _process(cluster: Cluster) -> psutil.Process:
    assert cluster.pid is not None
    return psutil.Process(cluster.pid)


def _is_empty(folder: Path) -> bool:
    return not any(folder.iterdir())


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _without_password(cluster: Cluster) -> str:
    return cluster.dsn().partition("&passfile=")[0]
