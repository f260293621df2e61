"""Whom a graph server becomes that root has started."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.graph_server.isolation import unprivileged_user
from penstock.graph_server.isolation.unprivileged_user import FIRST_NUMBER, NUMBERS, Account
from tests.kit.conftest import root_only

if TYPE_CHECKING:
    import pytest

_BECOME = """
import json, os, sys
from pathlib import Path
from penstock.graph_server.isolation import unprivileged_user
chosen = None
if sys.argv[2] != "0":
    chosen = unprivileged_user.Account(
        number=int(sys.argv[2]), reads_everything=sys.argv[3] == "1"
    )
changed = unprivileged_user.become(chosen, own=[Path(sys.argv[1])])
lines = Path("/proc/self/status").read_text().splitlines()
status = dict(line.split(":\\t", 1) for line in lines if ":\\t" in line)
readable = os.access(sys.argv[4], os.R_OK)
names = ("Uid", "Groups", "CapEff", "CapPrm", "CapAmb")
shown = {name: status[name] for name in names}
print(json.dumps({"changed": changed, "readable": readable} | shown))
"""
READING = "0000000000000004"
NOTHING = "0000000000000000"


def become(folder: Path, number: int, *, reads_everything: bool = False) -> dict[str, str]:
    secret = folder.parent / "secret"
    secret.touch(mode=0o600)
    arguments = [str(folder), str(number), str(int(reads_everything)), str(secret)]
    done = subprocess.run(
        [sys.executable, "-c", _BECOME, *arguments], check=True, capture_output=True
    )
    status: dict[str, str] = json.loads(done.stdout)
    return status


def test_instances_do_not_share_a_number_until_the_range_is_used_up() -> None:
    assert unprivileged_user.number_of(0) == unprivileged_user.number_of(NUMBERS) == FIRST_NUMBER
    assert unprivileged_user.number_of(NUMBERS - 1) == FIRST_NUMBER + NUMBERS - 1 == 65_519
    assert len({unprivileged_user.number_of(number) for number in range(NUMBERS)}) == NUMBERS


@root_only
def test_root_becomes_a_user_without_groups_and_its_folder_goes_along(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "file").touch()
    (folder / "link").symlink_to("/etc/passwd")
    status = become(folder, 61_200)
    assert (status["changed"], status["readable"]) == (True, False)
    assert status["Uid"] == "\t".join(["61200"] * 4)
    assert status["Groups"].strip() == ""
    assert {status[name] for name in ("CapEff", "CapPrm", "CapAmb")} == {NOTHING}
    assert {
        place.stat().st_uid for place in (folder, folder / "deep", folder / "deep" / "file")
    } == {61_200}
    assert Path("/etc/passwd").stat().st_uid == 0


@root_only
def test_the_one_capability_that_may_stay_reads(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    status = become(folder, 61_200, reads_everything=True)
    assert status["readable"] is True
    assert {status[name] for name in ("CapEff", "CapPrm", "CapAmb")} == {READING}


@root_only
def test_root_that_must_stay_root_has_no_capabilities(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    status = become(folder, 0)
    assert (status["changed"], status["Uid"]) == (False, "\t".join(["0"] * 4))
    assert {status[name] for name in ("CapEff", "CapPrm", "CapAmb")} == {NOTHING}


@root_only
def test_without_landlock_nobody_gets_the_capability(tmp_path: Path) -> None:
    """So what another user cannot read keeps the server with root."""
    tmp_path.chmod(0o700)
    assert unprivileged_user.for_instance(7, bounded=True, needed=[tmp_path]) == Account(
        number=FIRST_NUMBER + 7, reads_everything=True
    )
    assert unprivileged_user.for_instance(7, bounded=False, needed=[tmp_path]) is None


@root_only
def test_without_landlock_and_with_everything_in_reach_the_server_becomes_another_user(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/sh")
    assert unprivileged_user.for_instance(7, bounded=False, needed=[short_dir]) == Account(
        number=FIRST_NUMBER + 7, reads_everything=False
    )
    assert unprivileged_user.for_instance(7, bounded=False, needed=[short_dir / "missing"]) is None
