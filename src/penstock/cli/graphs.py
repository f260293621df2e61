"""`penstock source|mapping|snapshot|instance|query|algo`: over HTTP, with the client that notebooks
use."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from penstock.cli.home import connect
from penstock.cli.output import Json, emit, out, patience, plain
from penstock.cli.tabular import table
from penstock.client.bodies import given
from penstock.client.errors import Invalid
from penstock.client.text import printable
from penstock.client.words import Engine, InstanceStatus, SnapshotStatus  # noqa: TC001 - the command line reads them

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from penstock.client import shapes
    from penstock.client._sync.instances import Graph
    from penstock.client._sync.snapshots import Snapshot
    from penstock.client.json_value import JsonObject

Secrets = Annotated[
    list[str],
    Parameter(
        name="--secret", negative="", help="key=value, or key=@FILE, which is not seen in `ps`."
    ),
]
Settings = Annotated[
    list[str], Parameter(name="--set", negative="", help="key=value; the value is JSON or text.")
]
MAPPING = (
    "id",
    "name",
    "owner_username",
    "current_version",
    "node_count",
    "edge_type_count",
    "snapshot_count",
)
SNAPSHOT = ("id", "name", "status", "mapping_id", "mapping_version", "size_bytes", "ready_at")
INSTANCE = (
    "id",
    "name",
    "status",
    "wrapper_type",
    "owner_username",
    "node_count",
    "edge_count",
    "expires_at",
)
SOURCE = ("id", "name", "type", "owner_username", "is_default")


def list_sources(*, json: Json = False) -> int:
    """List data sources."""
    with connect() as ps:
        return print_table([source.raw for source in ps.sources.list()], SOURCE, json=json)


def add_source(
    name: str,
    type_: str,
    *,
    settings: Settings = [],  # noqa: B006
    secrets: Secrets = [],  # noqa: B006
    json: Json = False,
) -> int:
    """Add a data source: `penstock source add shop duckdb --set database=/data/shop.duckdb`; it is
    tried at once."""
    with connect() as ps:
        credentials = read_secrets(secrets)
        added = ps.sources.create(name, type_, read_settings(settings), credentials)
        result = ps.sources.test(added.id)
    emit(
        {"source": added.raw, "test": result},
        as_json=json,
        render=lambda: out.print(f"Source {added.id}: {plain(result['message'])}"),
    )
    return 0


def list_mappings(*, search: str | None = None, json: Json = False) -> int:
    """List mappings, newest first."""
    with connect() as ps:
        return print_table(
            [mapping.info.raw for mapping in ps.mappings.list(search=search)], MAPPING, json=json
        )


def show_mapping(mapping_id: int, *, json: Json = False) -> int:
    """Show a mapping with its definitions."""
    with connect() as ps:
        return print_document(ps.mappings.get(mapping_id).info.raw, json=json)


def create_mapping(file: Path, *, json: Json = False) -> int:
    """Create a mapping from a JSON file that holds what `POST /api/mappings` takes."""
    with connect() as ps:
        mapping: shapes.MappingDetail = ps.transport.call(
            "POST", "/api/mappings", json=read_file(file)
        )["data"]
    emit(
        mapping,
        as_json=json,
        render=lambda: out.print(
            f"Mapping {mapping['id']} {plain(repr(mapping['name']))} is there."
        ),
    )
    return 0


def infer_mapping(source_id: int, *, schema: str | None = None, json: Json = False) -> int:
    """Propose a mapping from the keys of a schema; save it, change it, and give it to `mapping
    create`."""
    with connect() as ps, patience("Reading the schema"):
        proposed = ps.mappings.infer(schema=schema, data_source=source_id)
    return print_document(proposed.data, json=json)


def delete_mapping(mapping_id: int, *, json: Json = False) -> int:
    """Delete a mapping that no snapshot depends on."""
    with connect() as ps:
        ps.mappings.get(mapping_id).delete()
    return print_done({"deleted": mapping_id}, f"Mapping {mapping_id} is deleted.", json=json)


def list_snapshots(
    *, mapping_id: int | None = None, status: SnapshotStatus | None = None, json: Json = False
) -> int:
    """List snapshots, newest first."""
    with connect() as ps:
        snapshots = ps.snapshots.list(mapping_id=mapping_id, status=status)
        return print_table([snapshot.info.raw for snapshot in snapshots], SNAPSHOT, json=json)


def show_snapshot(snapshot_id: int, *, json: Json = False) -> int:
    """Show a snapshot with its counts and progress."""
    with connect() as ps:
        snapshot = ps.snapshots.get(snapshot_id)
        shown = {**snapshot.info.raw, "exports": snapshot.progress().jobs}
    return print_document(shown, json=json)


def create_snapshot(mapping_id: int, name: str, *, wait: bool = True, json: Json = False) -> int:
    """Export a mapping's tables as they are now."""
    with connect() as ps:
        snapshot = ps.snapshots.create(mapping_id, name)
        if wait:
            snapshot.wait()
    return _print_state(snapshot, json=json)


def retry_snapshot(snapshot_id: int, *, json: Json = False) -> int:
    """Export again what failed."""
    with connect() as ps:
        snapshot = ps.snapshots.get(snapshot_id).retry()
    return _print_state(snapshot, json=json)


def cancel_snapshot(snapshot_id: int, *, json: Json = False) -> int:
    """Cancel a snapshot in progress."""
    with connect() as ps:
        snapshot = ps.snapshots.get(snapshot_id).cancel()
    return _print_state(snapshot, json=json)


def delete_snapshot(snapshot_id: int, *, json: Json = False) -> int:
    """Delete a snapshot and its files."""
    with connect() as ps:
        ps.snapshots.get(snapshot_id).delete()
    return print_done({"deleted": snapshot_id}, f"Snapshot {snapshot_id} is deleted.", json=json)


def list_instances(
    *, status: InstanceStatus | None = None, owner: str | None = None, json: Json = False
) -> int:
    """List instances, newest first."""
    with connect() as ps:
        instances = ps.instances.list(status=status, owner=owner)
        return print_table([graph.info.raw for graph in instances], INSTANCE, json=json)


def show_instance(instance_id: int, *, json: Json = False) -> int:
    """Show an instance and what happened to it."""
    with connect() as ps:
        graph = ps.instances.get(instance_id)
        return print_document({**graph.info.raw, "events": list(graph.history())}, json=json)


def start_instance(
    mapping_id: int,
    *,
    name: str | None = None,
    engine: Engine | None = None,
    ttl: str | None = None,
    wait: bool = True,
    json: Json = False,
) -> int:
    """Start a graph of a mapping and wait until it answers."""
    with connect() as ps:
        graph = ps.mappings.get(mapping_id).start(name, engine=engine, ttl=ttl, wait=wait)
    emit(graph.info.raw, as_json=json, render=lambda: _print_started(graph))
    return 0


def stop_instance(instance_id: int, *, force: bool = False, json: Json = False) -> int:
    """Terminate an instance; with --force, whatever runs on it."""
    with connect() as ps, patience("Ending it"):
        ps.instances.get(instance_id).terminate(force=force)
    text = f"Instance {instance_id} was terminated."
    return print_done({"terminated": instance_id}, text, json=json)


def query(
    instance_id: int,
    cypher: str,
    *,
    timeout: float | None = None,
    max_rows: int | None = None,
    json: Json = False,
) -> int:
    """Query a graph in Cypher."""
    with connect() as ps:
        graph = ps.instances.get(instance_id)
        with patience("Asking the graph"):
            result = graph.query(cypher, timeout=timeout, max_rows=max_rows)
    document = {"columns": result.columns, "column_types": result.column_types, "rows": result.rows}
    emit(document | {"truncated": result.truncated}, as_json=json, render=lambda: out.print(result))
    return 0


def algo(
    instance_id: int,
    name: str,
    *,
    label: str | None = None,
    edge: str | None = None,
    write: str | None = None,
    parameters: Settings = [],  # noqa: B006 - the command line reads it, nobody writes it
    json: Json = False,
) -> int:
    """Run an algorithm on a graph; `penstock algo 1 list` names them."""
    with connect() as ps:
        graph = ps.instances.get(instance_id)
        if name == "list":
            return print_table(
                graph.algo.catalogue(), ("name", "category", "description"), json=json
            )
        arguments = given(node_label=label, edge_type=edge) | read_settings(parameters)
        done = graph.algo.run(name, write=write, wait=True, progress=True, **arguments)
    return print_document(done.info.raw, json=json)


def _print_started(graph: Graph) -> None:
    out.print(f"Instance {graph.id} is {graph.status} at {graph.info.instance_url}")
    out.print(f"  [dim]penstock query {graph.id} 'MATCH (n) RETURN n LIMIT 10'[/dim]")


def _print_state(snapshot: Snapshot, *, json: bool) -> int:
    text = f"Snapshot {snapshot.id} is {snapshot.status}."
    return print_done(snapshot.info.raw, text, json=json)


def print_done(document: Mapping[str, object], text: str, *, json: bool) -> int:
    """What was done: one sentence for people."""
    emit(document, as_json=json, render=lambda: out.print(text))
    return 0


def print_table(rows: Sequence[Mapping[str, object]], columns: Iterable[str], *, json: bool) -> int:
    emit(rows, as_json=json, render=lambda: _draw(rows, tuple(columns)))
    return 0


def _draw(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    drawn = table(*(column.replace("_", " ") for column in columns))
    for row in rows:
        drawn.add_row(
            *(
                Text("" if row.get(column) is None else printable(str(row[column])))
                for column in columns
            )
        )
    out.print(drawn if rows else "[dim]None.[/dim]")


def print_document(value: Mapping[str, object], *, json: bool) -> int:
    emit(value, as_json=json, render=lambda: out.print_json(data=value, default=str))
    return 0


def read_settings(settings: Iterable[str]) -> dict[str, Any]:
    options = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise Invalid(f"{setting!r} is not key=value.", code="USAGE", status=422)
        try:
            options[key] = jsonlib.loads(text)
        except ValueError:
            options[key] = text
    return options


def read_secrets(secrets: Iterable[str]) -> dict[str, str]:
    """Texts as they are: a password of digits is no number."""
    pairs = [secret.partition("=") for secret in secrets]
    if wrong := [key for key, equals, _ in pairs if not equals]:
        raise Invalid(f"--secret {wrong[0]} is not key=value.", code="USAGE", status=422)
    return {
        key: _text(Path(value[1:])).strip() if value.startswith("@") else value
        for key, _, value in pairs
    }


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError as e:
        raise Invalid(f"{file} cannot be read: {e.strerror}.", code="USAGE", status=422) from None


def read_file(file: Path) -> JsonObject:
    try:
        document = jsonlib.loads(_text(file))
    except ValueError as e:
        raise Invalid(f"{file} is not JSON: {e}.", code="USAGE", status=422) from None
    if not isinstance(document, dict):
        raise Invalid(f"{file} is not a JSON object.", code="USAGE", status=422)
    return document
