"""Writes what the client needs of the API's own description: `python -m tools.shapes`.

`tools/client_api.json` has the words that a field may be, and the objects of answers and requests
that the client or the command line names. It is committed, because a build has no API to ask;
`tools.generate` makes Python of it. A field or a word that is new in the API is new there after the
next run; a test fails until then.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from tools.generate import API, CLIENT, MODELS, generate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.generate import Api, Fields

APART = ("/api/internal", "/api/iceberg", "/tables", "/wrapper")
PAGING = {"offset", "limit"}
PREFIX = "#/components/schemas/"
GENERATED = {CLIENT / name for name in ("models.py", "shapes.py", "words.py")}
WRAPPERS = ("Data_", "Listing_", "penstock__api__schema__envelope__")
PLACES = {
    "ChangeType": "NodeChanged change_type",
    "ClusterStatus": "ClusterHealth status",
    "ComponentStatus": "Component status",
    "DecisionKind": "NewDecision kind",
    "EndedStatus": "Ended-Output status",
    "Engine": "NewInstance wrapper_type",
    "EntityType": "JobProgress type",
    "EvidenceForm": "/api/runs/{run_id}/evidence/{evidence} format",
    "EvidenceFormulas": "/api/runs/{run_id}/evidence/{evidence} formulas",
    "EvidenceTable": "/api/runs/{run_id}/evidence/{evidence} evidence",
    "ExportStatus": "JobProgress status",
    "HealthLevel": "/api/tables health",
    "InstancePhase": "penstock__api__graphs__instance_schemas__Progress phase",
    "InstanceStatus": "Instance status",
    "JobStatus": "JobDetail status",
    "JobStatusFilter": "/api/jobs status",
    "KeyType": "PrimaryKeyBody type",
    "MaintenanceStatus": "JobDetail maintenance_status",
    "PropertyType": "PropertyBody type",
    "ResourceType": "FavoriteBody resource_type",
    "Role": "ChangedRole role",
    "Severity": "Fault severity",
    "ShareRole": "ShareBody role",
    "SideName": "NoteBody side",
    "SnapshotPhase": "ShortProgress phase",
    "SortOrder": "/api/jobs sort_order",
    "SourceType": "NewDataSource type",
    "StepStatus": "penstock__api__graphs__instance_schemas__Step status",
}
"""Where each list of words is found: a component and its field, or a path and its parameter."""
NAMES = {
    "Component": "ComponentHealth",
    "Ended-Output": "Ended",
    "Filters": "BulkFilters",
    "JobStatus": "LoopStatus",
    "JobsStatus": "LoopsStatus",
    "RunView": "MaintenancePass",
    "Schema": "SchemaListed",
    "TableView": "TableListed",
    "penstock__api__admin__bulk_delete__Deleted": "BulkDeleted",
    "penstock__api__admin__ops__Triggered": "LoopTriggered",
    "penstock__api__admin__runtime_config__Export": "ExportSettings",
    "penstock__api__admin__runtime_config__LifecycleBody": "LifecycleSettingsBody",
    "penstock__api__admin__runtime_config__MaintenanceBody": "MaintenanceModeBody",
    "penstock__api__admin__runtime_config__Updated": "SettingsUpdated",
    "penstock__api__admin__users__Shown": "UserShown",
    "penstock__api__graphs__exports__Export": "ExportJob",
    "penstock__api__graphs__favorites__Dropped": "FavoriteDropped",
    "penstock__api__graphs__instance_schemas__Progress": "InstanceProgress",
    "penstock__api__graphs__instance_schemas__Step": "InstanceStep",
    "penstock__api__graphs__mapping_schemas__Deleted": "Deleted",
    "penstock__api__graphs__mapping_schemas__LifecycleBody": "LifecycleBody",
    "penstock__api__graphs__mapping_schemas__Validation": "MappingValidation",
    "penstock__api__graphs__snapshot_schemas__Progress": "SnapshotProgress",
    "penstock__api__serving__health__Health": "Alive",
    "penstock__api__jobs__jobs__Cancelled": "JobCancelled",
    "penstock__api__jobs__jobs__Enqueued": "JobEnqueued",
    "penstock__api__jobs__schedules__Dropped": "ScheduleDropped",
    "penstock__api__jobs__schedules__ScheduleBody": "ScheduleBody",
    "penstock__api__maintenance__tables__Health": "TableHealth",
    "penstock__api__maintenance__tables__MaintenanceBody": "MaintenanceBody",
    "penstock__api__reconcile__recipes__Dropped": "RecipeDropped",
    "penstock__api__reconcile__recipes__ScheduleBody": "RecipeScheduleBody",
    "penstock__api__reconcile__recipes__Step": "RecipeStep",
    "penstock__api__reconcile__recipes__Validation": "RecipeValidation",
    "penstock__api__reconcile__runs__CancelBody": "RunCancelBody",
    "penstock__api__reconcile__runs__Progress": "RunProgress",
    "penstock__api__reconcile__uploads__Column": "UploadColumn",
    "penstock__api__sources__data_source_schemas__Column": "SourceColumn",
    "penstock__api__sources__data_source_schemas__Dropped": "SourceDropped",
    "penstock__api__sources__data_source_schemas__Table": "SourceTable",
    "penstock__api__sources__schema_browser__Column": "ColumnListed",
    "penstock__api__sources__schema_browser__Table": "BrowsedTable",
    "penstock__api__sources__schema_browser__Triggered": "RefreshTriggered",
}


@cache
def description() -> dict[str, Any]:
    """The document of a control plane that has every room; nothing of it runs."""
    from unittest.mock import MagicMock

    from penstock.api.app import create_app
    from penstock.api.services import Services

    furnished: Any = {field.name: MagicMock() for field in fields(Services)}
    return create_app(Services(**furnished)).openapi()


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of what is for clients."""
    for path, methods in description()["paths"].items():
        if not path.startswith(APART):
            for method, operation in methods.items():
                yield method.upper(), path, operation


def referred(value: object) -> Iterator[str]:
    """The components that a piece of the document names itself."""
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            yield reference.removeprefix(PREFIX)
        for inner in value.values():
            yield from referred(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from referred(inner)


def components() -> dict[str, dict[str, Any]]:
    """Every component that is for clients, by the name that the document gives it."""
    schemas, components = description()["components"]["schemas"], dict[str, dict[str, Any]]()
    waiting = list(referred([operation for _, _, operation in operations()]))
    while waiting:
        name = waiting.pop()
        if name not in components:
            components[name] = schemas[name]
            waiting += referred(schemas[name])
    return dict(sorted(components.items()))


def named(component: str) -> str:
    """What a component is called here."""
    name = NAMES.get(component, component)
    if not name.isidentifier() or "__" in name:
        raise SystemExit(f"{component} needs a name: add it to NAMES in tools/shapes.py.")
    return name


@cache
def lists() -> dict[str, tuple[str, ...]]:
    """The lists of words, by the names that they have here."""
    own = {
        named(name): tuple(schema["enum"])
        for name, schema in components().items()
        if "enum" in schema
    }
    return dict(sorted((own | {name: _listed(place) for name, place in PLACES.items()}).items()))


def _listed(place: str) -> tuple[str, ...]:
    where, field = place.split(" ")
    if where.startswith("/"):
        parameters = description()["paths"][where]["get"]["parameters"]
        [schema] = [parameter["schema"] for parameter in parameters if parameter["name"] == field]
    else:
        schema = components()[where]["properties"][field]
    [values] = [option["enum"] for option in (schema, *schema.get("anyOf", ())) if "enum" in option]
    return tuple(values)


def api() -> Api:
    """What the client has of the API."""
    return {
        "words": {name: list(values) for name, values in lists().items()},
        "shapes": {name: fields for name, fields in objects().items() if name in needed()},
    }


@cache
def objects() -> dict[str, Fields]:
    """Every object for clients, and what each list can be narrowed by."""
    schemas = {
        named(name): schema
        for name, schema in components().items()
        if not name.startswith(WRAPPERS) and "enum" not in schema
    }
    schemas |= dict(_filters())
    return {name: _fields(schema) for name, schema in sorted(schemas.items())}


@cache
def needed() -> set[str]:
    """The objects that code names, and those inside them."""
    users = [CLIENT.rglob("*.py"), (CLIENT.parent / "cli").rglob("*.py")]
    texts = [file.read_text() for files in users for file in files if file not in GENERATED]
    waiting = set(re.findall(r"\bshapes\.(\w+)", "\n".join(texts)))
    waiting |= {source for sources in MODELS.values() for source in sources}
    needed = set[str]()
    while waiting:
        name = waiting.pop()
        if name in objects() and name not in needed:
            needed.add(name)
            waiting |= set(re.findall(r"\b[A-Z]\w+", " ".join(objects()[name].values())))
    return needed


def _filters() -> Iterator[tuple[str, dict[str, Any]]]:
    """What a list can be narrowed by."""
    for method, path, operation in operations():
        asked = [
            p
            for p in operation.get("parameters", ())
            if p["in"] == "query" and p["name"] not in PAGING
        ]
        if (
            method == "GET"
            and "limit" in {p["name"] for p in operation.get("parameters", ())}
            and asked
        ):
            segments = [
                word.replace("-", "_") for word in path.split("/")[2:] if not word.startswith("{")
            ]
            name = "".join(part.capitalize() for word in segments for part in word.split("_"))
            yield f"{name}Filters", {"properties": {p["name"]: p["schema"] for p in asked}}


def _fields(schema: dict[str, Any]) -> Fields:
    required = set(schema.get("required", ()))
    return {
        field: _hint(inner, field in required)
        for field, inner in schema.get("properties", {}).items()
    }


def _hint(schema: dict[str, Any], required: bool) -> str:
    hint = _type(schema)
    return hint if required else f"NotRequired[{hint}]"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return named(schema["$ref"].removeprefix(PREFIX))
    if "enum" in schema:
        return _word(tuple(schema["enum"]))
    if "const" in schema:
        const = schema["const"]
        return f"Literal[{json.dumps(const) if isinstance(const, str) else repr(const)}]"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(_type(option) for option in schema[several]))
    match schema.get("type"):
        case "array":
            return f"list[{_type(schema.get('items', {}))}]"
        case "object":
            inner = schema.get("additionalProperties")
            return f"dict[str, {_type(inner) if isinstance(inner, dict) else 'JsonValue'}]"
        case "string" if schema.get("format") == "date-time":
            return "datetime"
        case str(word):
            return {
                "string": "str",
                "integer": "int",
                "number": "float",
                "boolean": "bool",
                "null": "None",
            }[word]
    return "JsonValue"


def _word(values: tuple[str, ...]) -> str:
    for name, members in lists().items():
        if members == values:
            return name
    return f"Literal{json.dumps(values)}"


def rendered() -> str:
    """One object a line, so that a difference can be read."""
    sections = []
    for title, entries in api().items():
        lines = (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in entries.items())
        body = ",\n".join(lines)
        sections.append(f"{json.dumps(title)}: {{\n{body}\n}}")
    return "{\n" + ",\n".join(sections) + "\n}\n"


def main() -> None:
    API.write_text(rendered())
    generate()


if __name__ == "__main__":
    main()
