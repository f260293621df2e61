"""Wear an Iceberg table out with small writes, look at its health, and have it tidied."""

import os
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog

import penstock

home = Path(os.environ.get("PENSTOCK_HOME") or Path.home() / ".penstock")
token = os.environ.get("PENSTOCK_API_KEY") or (home / "secrets" / "operator_token").read_text()

with penstock.connect() as ps:
    catalog = RestCatalog("lake", uri=f"{ps.url}/api/iceberg/lake", token=token)
    catalog.create_namespace_if_not_exists("examples")
    schema = pa.schema([("id", pa.int64()), ("word", pa.string())])
    table = catalog.create_table_if_not_exists("examples.worn", schema)
    for write in range(12):
        table.append(pa.table({"id": [write], "word": [f"word {write}"]}, schema))

    worn = ps.tables["lake.examples.worn"]
    print(f"health {worn.health()['score']}, {table.inspect.files().num_rows} files")
    job = worn.maintain([{"name": "rewrite_data_files", "force": True}]).wait()
    print(
        f"{job!r}: {table.refresh().inspect.files().num_rows} file, "
        f"{len(table.scan().to_arrow())} rows"
    )
