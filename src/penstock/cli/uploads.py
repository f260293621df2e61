"""`penstock upload`: files that recipes read, over HTTP."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - the command line reads it

from penstock.cli.graphs import print_document, print_table
from penstock.cli.home import connect
from penstock.cli.output import Json, emit, out, patience

COLUMNS = ("upload_id", "name", "owner", "rows", "size_bytes", "created_at", "expires_at")


def add_upload(
    file: Path, *, encoding: str | None = None, delimiter: str | None = None, json: Json = False
) -> int:
    """Upload a CSV, Parquet or Excel file for recipes to read."""
    with connect() as ps, patience(f"Uploading {file.name}"):
        upload = ps.reconcile.uploaded(
            ps.reconcile.upload(file, encoding=encoding, delimiter=delimiter)
        )
    words = f"{upload['rows']:,} rows. The upload is {upload['upload_id']}."
    emit(upload, as_json=json, render=lambda: out.print(words))
    return 0


def list_uploads(*, json: Json = False) -> int:
    """List uploads, newest first."""
    with connect() as ps:
        return print_table(list(ps.reconcile.uploads()), COLUMNS, json=json)


def show_usage(*, json: Json = False) -> int:
    """Show the size and quota of your uploads."""
    with connect() as ps:
        return print_document(ps.reconcile.upload_usage(), json=json)


def delete_upload(upload_id: str, *, json: Json = False) -> int:
    """Delete an upload and its file; not while a run that is not over reads it."""
    with connect() as ps:
        dropped = ps.reconcile.delete_upload(upload_id)
    emit(dropped, as_json=json, render=lambda: out.print(f"Upload {upload_id} is deleted."))
    return 0
