from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from penstock.maintenance.actions.model import Ended
from penstock.maintenance.tables.catalog.catalogs import CatalogConfig, open_catalog
from tests.maintenance.tables import COMPACT, SampleTable

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 6.0
EXPIRE = {"name": "expire_snapshots", "older_than_seconds": 30, "retain_last": 3}


def test_beside_writers_in_other_processes_no_row_is_lost_doubled_or_brought_back(
    database: str, tmp_path: Path
) -> None:
    properties = {"warehouse": tmp_path.as_uri()}
    catalog = open_catalog(
        CatalogConfig(name="lake", type="sql", uri=database, properties=properties)
    )
    sample = SampleTable(catalog).create()
    command = [sys.executable, "-m", "tests.maintenance.writer", database, properties["warehouse"]]
    writers = {
        role: subprocess.Popen([*command, role, str(SECONDS), str(start)], stdout=subprocess.PIPE)
        for role, start in (("append", 10_000), ("delete", 20_000))
    }
    ended: list[Ended] = []
    until = time.monotonic() + 60
    while any(writer.poll() is None for writer in writers.values()) and time.monotonic() < until:
        actions = (EXPIRE, COMPACT, "rewrite_position_delete_files", "rewrite_manifests")
        ended += [sample.run(action).status for action in actions]
    outputs = {
        role: json.loads(writer.communicate()[0].splitlines()[-1])
        for role, writer in writers.items()
    }
    assert all(writer.returncode == 0 for writer in writers.values())
    ids = sample.ids()
    assert len(ids) == len(set(ids))
    assert set(ids) == (set(range(60)) | set(outputs["append"])) - set(outputs["delete"])
    assert ended.count(Ended.COMPLETED) >= 3
    assert not {Ended.FAILED, Ended.UNKNOWN, Ended.REFUSED} & set(ended)
    assert len(outputs["append"]) >= 20
    assert len(outputs["delete"]) >= 3
    catalog.close()
