"""Other implementations that read Iceberg tables, each in a folder of its own: their versions do
not go with ours.

DuckDB's extension exists for one version of DuckDB, and the provider of pyiceberg-core fits one of
DataFusion.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.servers.parts import LOCAL, Part, alone, from_pypi, new_folder

if TYPE_CHECKING:
    from pathlib import Path

CACHE = LOCAL / "readers"
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
    query = "SELECT id, day, note, at FROM rows ORDER BY id"
    rows = pa.Table.from_batches(session.sql(query).collect())
    at = rows["at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    columns = [rows[name].to_pylist() for name in ("id", "day", "note")]
    return [list(row) for row in zip(*columns, at.to_pylist())]
{_SAY}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    name: str
    wheels: tuple[str, ...]
    script: str

    def read(self, locations: list[str]) -> list[list[list[object]]]:
        """The rows of each table, in the order of their ids."""
        env = os.environ | {"PYTHONPATH": str(self.folder())}
        command = [sys.executable, "-c", self.script, *locations]
        done = subprocess.run(command, capture_output=True, env=env, timeout=120, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{self.name}: {done.stderr.decode()[-2000:]}")
        tables: list[list[list[object]]] = json.loads(done.stdout)
        return tables

    def folder(self) -> Path:
        """Where its packages are."""
        self.part.require()
        return self._folder

    @property
    def part(self) -> Part:
        return Part(name=self.name, present=self._folder.is_dir, fetch=self._fetch)

    @property
    def _folder(self) -> Path:
        return CACHE / "-".join(self.wheels[0].split("=="))

    def _fetch(self) -> None:
        with alone(CACHE), new_folder(self._folder) as work:
            from_pypi(work, *self.wheels)


DUCKDB = Reader(
    name="DuckDB",
    wheels=("duckdb==1.5.5", "duckdb-extension-iceberg==1.5.5", "duckdb-extension-avro==1.5.5"),
    script=_DUCKDB,
)
DATAFUSION = Reader(name="DataFusion", wheels=("datafusion==54.1.0",), script=_DATAFUSION)
