"""Writes what the API says from its own description: `python -m tools.shapes`.

`client/words.py` has the words that a field may be, `client/shapes.py` the objects of the answers
and requests as typed dicts. A field, a word or an object that is new in the API is new there after
the next run; a test fails until then.
"""

from __future__ import annotations

import keyword
import re
import subprocess
import sys
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from tools.unasync import CLIENT

if TYPE_CHECKING:
    from collections.abc import Iterator

APART = ("/api/internal", "/api/iceberg", "/tables", "/wrapper")
PAGING = {"offset", "limit"}
PREFIX = "#/components/schemas/"
WRAPPERS = ("Data_", "Listing_", "penstock__api__envelope__")
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
    "penstock__api__health__Health": "Alive",
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
HEAD = '"""{}. Written by `python -m tools.shapes`."""\n\n'


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
    return dict(sorted((own | {name: _found(place) for name, place in PLACES.items()}).items()))


def _found(place: str) -> tuple[str, ...]:
    where, field = place.split(" ")
    if where.startswith("/"):
        parameters = description()["paths"][where]["get"]["parameters"]
        [schema] = [parameter["schema"] for parameter in parameters if parameter["name"] == field]
    else:
        schema = components()[where]["properties"][field]
    [values] = [option["enum"] for option in (schema, *schema.get("anyOf", ())) if "enum" in option]
    return tuple(values)


def words() -> str:
    lines = [
        f"{name} = Literal[{', '.join(map(repr, values))}]" for name, values in lists().items()
    ]
    head = HEAD.format("The words that a field may be") + "from typing import Literal\n\n"
    return formatted(head + "\n".join(lines), "words.py")


def shapes() -> str:
    objects = {
        named(name): schema
        for name, schema in components().items()
        if _shown(name) and "enum" not in schema
    }
    objects |= dict(_filters())
    body = "\n\n".join(_object(name, schema) for name, schema in sorted(objects.items()))
    used = [name for name in lists() if re.search(rf"\b{name}\b", body)]
    imports = (
        "from __future__ import annotations\n\nfrom typing import Any, Literal, NotRequired, "
        "TypedDict\n\n"
    )
    imports += f"from penstock.client.words import {', '.join(used)}\n\n\n"
    return formatted(
        HEAD.format("What the API's answers and requests look like") + imports + body, "shapes.py"
    )


def _shown(component: str) -> bool:
    return not component.startswith(WRAPPERS)


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


def _object(name: str, shape: dict[str, Any]) -> str:
    required = set(shape.get("required", ()))
    hints = {
        field: _hint(schema, field in required)
        for field, schema in shape.get("properties", {}).items()
    }
    if any(keyword.iskeyword(field) for field in hints):
        inner = ", ".join(f'"{field}": {hint}' for field, hint in hints.items())
        return f'{name} = TypedDict("{name}", {{{inner}}})\n'
    lines = [f"    {field}: {hint}" for field, hint in hints.items()] or ["    pass"]
    return f"class {name}(TypedDict):\n" + "\n".join(lines) + "\n"


def _hint(schema: dict[str, Any], required: bool) -> str:
    hint = _type(schema)
    return hint if required else f"NotRequired[{hint}]"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return named(schema["$ref"].removeprefix(PREFIX))
    if "enum" in schema:
        return _word(tuple(schema["enum"]))
    if "const" in schema:
        return f"Literal[{schema['const']!r}]"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(_type(option) for option in schema[several]))
    match schema.get("type"):
        case "array":
            return f"list[{_type(schema.get('items', {}))}]"
        case "object":
            inner = schema.get("additionalProperties")
            return f"dict[str, {_type(inner) if isinstance(inner, dict) else 'Any'}]"
        case str(word):
            return {
                "string": "str",
                "integer": "int",
                "number": "float",
                "boolean": "bool",
                "null": "None",
            }[word]
    return "Any"


def _word(values: tuple[str, ...]) -> str:
    for name, members in lists().items():
        if members == values:
            return name
    return f"Literal[{', '.join(map(repr, values))}]"


def formatted(text: str, name: str) -> str:
    run = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--quiet",
        "--stdin-filename",
        f"src/penstock/client/{name}",
        "-",
    ]
    done = subprocess.run(
        run, input=text, capture_output=True, text=True, check=True, cwd=CLIENT.parents[2]
    )
    return done.stdout


def main() -> None:
    (CLIENT / "words.py").write_text(words())
    (CLIENT / "shapes.py").write_text(shapes())


if __name__ == "__main__":
    main()
