"""Root, a plain user, and a user that nobody has heard of."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import stat
import sys
from pathlib import Path

import psutil
import pytest

from penstock.kit.postgres import (
    Binaries,
    Cluster,
    ClusterSettings,
    PostgresFailed,
    account,
    template,
)
from tests.kit.conftest import execute, root_only, value

NOBODY = 65534
UNKNOWN = 54321

pytestmark = root_only


@pytest.fixture(scope="module")
def anyones_python() -> str:
    """An interpreter that every account can run; root's own is often in root's home."""
    same = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{same}", f"/usr/local/bin/{same}"):
        program = Path(candidate)
        if program.exists() and account.Account(uid=NOBODY, gid=NOBODY).runs(program):
            return candidate
    pytest.skip(f"no {same} that a plain user can run")


async def test_as_root_the_server_is_lent_to_an_account_that_exists(cluster: Cluster) -> None:
    names = {entry.pw_name for entry in pwd.getpwall()}
    assert cluster.pid is not None
    process = psutil.Process(cluster.pid)
    assert process.username() == ("postgres" if "postgres" in names else "nobody")
    assert set(process.uids()) == {cluster.places.account.uid}
    assert set(process.gids()) == {cluster.places.account.gid}


async def test_without_a_user_postgres_nobody_serves(
    folder: Path, newest: Binaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "_STAND_INS", ("penstock-has-no-such-user", "nobody"))
    async with Cluster(folder / "pg", newest) as cluster:
        assert psutil.Process(cluster.pid).username() == "nobody"
        assert await value(cluster.dsn(), "SELECT 1") == 1


async def test_a_private_home_stays_private_and_a_link_shows_where_the_data_went(
    folder: Path, newest: Binaries
) -> None:
    home = folder / "home"
    home.mkdir(mode=0o700)
    settings = ClusterSettings(shared=folder / "shared")
    async with Cluster(home / "postgres", newest, settings=settings) as cluster:
        await execute(cluster.dsn(), "CREATE TABLE note AS SELECT 7 AS body")
    async with Cluster(home / "postgres", newest, settings=settings) as cluster:
        assert await value(cluster.dsn(), "SELECT body FROM note") == 7
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert (home / "postgres").resolve().parent == folder / "shared"
    assert len(list((folder / "shared").iterdir())) == 1

    shutil.rmtree(folder / "shared")
    with pytest.raises(PostgresFailed, match=r"points to .*, which is gone"):
        await Cluster(home / "postgres", newest, settings=settings).start()


async def test_data_that_the_account_cannot_reach_are_not_moved_behind_its_back(
    folder: Path, newest: Binaries
) -> None:
    home = folder / "home"
    home.mkdir(mode=0o700)
    (home / "postgres").mkdir()
    (home / "postgres" / "precious").touch()
    with pytest.raises(PostgresFailed, match="who cannot reach"):
        await Cluster(home / "postgres", newest).start()
    assert (home / "postgres" / "precious").exists()


async def test_programs_in_a_private_place_are_copied_once(
    data_dir: Path, folder: Path, newest: Binaries
) -> None:
    hidden = _hide(newest, folder / "venv")
    settings = ClusterSettings(shared=folder / "shared")
    for _ in range(2):
        async with Cluster(data_dir, hidden, settings=settings) as cluster:
            assert psutil.Process(cluster.pid).exe().startswith(str(folder / "shared" / "programs"))
            assert await value(cluster.dsn(), "SELECT 1") == 1
    assert len(list((folder / "shared" / "programs").iterdir())) == 1


async def test_a_home_that_happens_to_hold_the_programs_is_not_copied(
    data_dir: Path, folder: Path, newest: Binaries
) -> None:
    home = folder / "home"
    home.mkdir(mode=0o700)
    shutil.copytree(newest.bin_dir, home / "bin")
    hidden = Binaries(bin_dir=home / "bin", version=newest.version)
    with pytest.raises(PostgresFailed, match="who cannot run the programs in"):
        await Cluster(data_dir, hidden, settings=ClusterSettings(shared=folder / "shared")).start()
    assert not (folder / "shared").exists()


async def test_a_link_in_the_servers_folder_does_not_lead_root_astray(
    cluster: Cluster, folder: Path
) -> None:
    await cluster.stop()
    mine = folder / "mine"
    mine.write_text("root's own\n")
    for name in ("postgres.log", "lock"):
        target = cluster.places.folder / name
        target.unlink()
        target.symlink_to(mine)
        with pytest.raises(OSError, match="Too many levels of symbolic links"):
            await cluster.start()
        target.unlink()
    assert mine.read_text() == "root's own\n"
    assert mine.stat().st_uid == 0


async def test_a_plain_user_is_told_where_it_may_not_write(
    folder: Path, anyones_python: str
) -> None:
    output = await _start_as(NOBODY, anyones_python, folder / "pg")
    assert f"The system does not permit us to write to {folder}/pg." in output


async def test_somebody_elses_folder_is_refused(folder: Path, newest: Binaries) -> None:
    (folder / "pg").mkdir()
    (folder / "pg" / "theirs").touch()
    with pytest.raises(PostgresFailed, match="does not belong to"):
        await Cluster(folder / "pg", newest).start()


async def test_a_plain_user_and_root_take_turns_on_the_same_data(
    folder: Path, newest: Binaries, anyones_python: str
) -> None:
    os.chown(folder, NOBODY, NOBODY)
    assert (
        await _start_as(NOBODY, anyones_python, folder / "pg") == f"uid {NOBODY}, server {NOBODY}"
    )
    async with Cluster(folder / "pg", newest) as cluster:
        assert psutil.Process(cluster.pid).uids().real == NOBODY
    assert (
        await _start_as(NOBODY, anyones_python, folder / "pg") == f"uid {NOBODY}, server {NOBODY}"
    )


async def test_a_user_without_an_entry_begins_from_a_template(
    folder: Path, newest: Binaries, anyones_python: str
) -> None:
    os.chown(folder, UNKNOWN, UNKNOWN)
    output = await _start_as(UNKNOWN, anyones_python, folder / "pg")
    assert "PostgreSQL cannot make its files as a user without an entry in /etc/passwd." in output
    assert "PENSTOCK_PG_TEMPLATE" in output

    archive = folder / "template.tar.gz"
    await template.write(archive, newest)
    output = await _start_as(UNKNOWN, anyones_python, folder / "pg", "--template", archive)
    assert output == f"uid {UNKNOWN}, server {UNKNOWN}"


def _hide(binaries: Binaries, venv: Path) -> Binaries:
    """The wheel again, in a place that only root can enter."""
    install = binaries.bin_dir.parent
    libraries = install.parent.with_name(f"{install.parent.name}.libs")
    shutil.copytree(install, venv / install.parent.name / install.name)
    if libraries.exists():
        shutil.copytree(libraries, venv / libraries.name)
    venv.chmod(0o700)
    return Binaries(
        bin_dir=venv / install.parent.name / install.name / "bin", version=binaries.version
    )


async def _start_as(uid: int, python: str, *arguments: str | Path) -> str:
    """Start as that user, look at who runs what, stop; or what it complained of."""
    supervisor = await asyncio.create_subprocess_exec(
        python,
        "-m",
        "penstock.kit.postgres",
        "run",
        *arguments,
        user=uid,
        group=uid,
        extra_groups=[],
        cwd="/",
        env={"PYTHONPATH": ":".join(sys.path), "PATH": os.environ["PATH"], "HOME": "/"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert supervisor.stdout is not None
    seen = ""
    if dsn := (await supervisor.stdout.readline()).decode().strip():
        assert await value(dsn, "SELECT 1") == 1
        server = psutil.Process(supervisor.pid).children()[0]
        seen = f"uid {psutil.Process(supervisor.pid).uids().real}, server {server.uids().real}"
        supervisor.terminate()
    _, complaints = await supervisor.communicate()
    return seen or complaints.decode()
