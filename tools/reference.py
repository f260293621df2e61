"""Writes the reference pages from the code: `python -m tools.reference`. A test fails when the two
differ."""

from __future__ import annotations

import importlib
import json
import os
import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools import licences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pydantic_settings import BaseSettings

    from penstock.kit.errors import PenstockError

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "reference"
NOTE = "<!-- written by `python -m tools.reference`; change the code instead -->"
METHODS = ("get", "post", "put", "patch", "delete")
RIGHTS = {"any": "all", "own": "their own", "no": "–"}


def cli() -> str:
    from penstock.cli import app

    exits = (
        "Exit codes: 0 done · 1 the work failed · 2 invalid call · 3 not found · 4 refused "
        "· 5 server unreachable. `--json` prints one JSON document on stdout and nothing "
        "else. `NO_COLOR` is respected."
    )
    text = app.generate_docs(output_format="markdown", usage_name="penstock")
    body = text.split("**Commands**:", 1)[1]
    return f"# Command line\n\n{NOTE}\n\n{exits}\n\n**Commands**:{_blocks_are_output(body)}"


def _blocks_are_output(text: str) -> str:
    """Usage lines are shapes of calls, not calls."""
    return text.replace("```console", "```text")


def settings() -> str:
    from penstock.graph_server.settings import GraphServerSettings
    from penstock.wiring.settings import Settings

    lines = [
        "# Settings",
        "",
        NOTE,
        "",
        "Each is `PENSTOCK_…` in the environment, or its name in `penstock.toml` in the home "
        "folder (or the file that `PENSTOCK_CONFIG` names), or a file of that name in "
        "`PENSTOCK_SECRETS_DIR`. The environment wins over secrets, secrets over the file, the "
        "file over the default.",
        "",
        *_variables(Settings, "PENSTOCK_"),
        "",
        "## Graph servers",
        "",
        "These are set in the environment of the control plane, which checks them at its start "
        "and passes them on to every graph server that it launches.",
        "",
        *_variables(GraphServerSettings, "PENSTOCK_INSTANCE_"),
    ]
    return "\n".join(lines) + "\n"


def _variables(settings: type[BaseSettings], prefix: str) -> list[str]:
    lines = ["| variable | default | type | meaning |", "|---|---|---|---|"]
    schema = settings.model_json_schema()["properties"]
    for name, field in settings.model_fields.items():
        default = (
            "`~/.penstock`"
            if name == "home"
            else _code(field.get_default(call_default_factory=True))
        )
        kind = _kind(schema[name]).replace("|", "\\|")
        lines.append(
            f"| `{prefix}{name.upper()}` | {default} | {kind} | {_cell(field.description or '')} |"
        )
    return lines


def errors() -> str:
    lines = [
        "# Error codes",
        "",
        NOTE,
        "",
        'An error is `{"error": {"code", "message", "hint", "details", …}}`. The code is for '
        "programs and does not"
        " change; the message and the hint are for people. The client raises the same tree, and "
        "tries again by itself"
        " what is retryable.",
        "",
        "| code | status | retryable | means |",
        "|---|---:|---|---|",
    ]
    seen: dict[str, list[type[PenstockError]]] = {}
    for kind in _raised():
        seen.setdefault(kind.code, []).append(kind)
    for code, kinds in sorted(seen.items()):
        summary = next(
            (text for kind in kinds if "code" in vars(kind) and (text := _first(kind))), ""
        )
        lines.append(
            f"| `{code}` | {kinds[0].status} | {'yes' if kinds[0].retryable else ''} | "
            f"{_cell(summary)} |"
        )
    return "\n".join(lines) + "\n"


def _raised() -> Iterator[type[PenstockError]]:
    """Every error class of the server, found where a code is written down."""
    from penstock.kit.errors import PenstockError

    for file in sorted((ROOT / "src" / "penstock").rglob("*.py")):
        room = file.relative_to(ROOT / "src").with_suffix("").parts
        if room[1] not in ("client", "cli") and re.search(
            r'^    code\b.* = "', file.read_text(), re.MULTILINE
        ):
            importlib.import_module(".".join(room))
    waiting: list[type[PenstockError]] = [PenstockError]
    while waiting:
        kind = waiting.pop(0)
        waiting += kind.__subclasses__()
        if kind is not PenstockError and kind.__module__.startswith("penstock."):
            yield kind


def _first(kind: type) -> str:
    text = (kind.__dict__.get("__doc__") or "").strip()
    return " ".join(text.split("\n\n")[0].split())


def http() -> str:
    document = _document()
    lines = ["# HTTP", "", NOTE, "", *_http_words()]
    by_tag: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, operations in document["paths"].items():
        for method in METHODS:
            if method in operations and not path.startswith("/api/internal/"):
                tag = (operations[method].get("tags") or ["others"])[0]
                by_tag.setdefault(tag, []).append((method.upper(), path, operations[method]))
    schemas = document["components"]["schemas"]
    for tag, entries in sorted(by_tag.items()):
        lines += [f"## {tag.capitalize()}", ""]
        for method, path, operation in entries:
            lines += _operation(method, path, operation, schemas)
    return "\n".join(lines).rstrip() + "\n"


def _http_words() -> list[str]:
    return [
        "The same, for machines: `GET /api/openapi.json`. Who may call is one table, "
        "`src/penstock/api/permissions.py`. Writes under `/api` take an `Idempotency-Key`. What "
        "workers and graph servers call is left out.",
        "",
    ]


def _operation(
    method: str, path: str, operation: dict[str, Any], schemas: Mapping[str, Any]
) -> list[str]:
    lines = [
        f"### `{method} {path}`",
        "",
        f"{operation.get('summary', '')}. {_who(method, path)}".strip(),
        "",
    ]
    parameters = [p for p in operation.get("parameters", ()) if p["name"] != "Idempotency-Key"]
    if parameters:
        lines += ["| parameter | in | type | |", "|---|---|---|---|"]
        for parameter in parameters:
            text = parameter.get("description", "")
            text += " Required." if parameter.get("required") else ""
            kind = _kind(parameter.get("schema", {})).replace("|", "\\|")
            lines.append(
                f"| `{parameter['name']}` | {parameter['in']} | {kind} | {_cell(text.strip())} |"
            )
        lines.append("")
    lines += _body(operation, schemas)
    answers = ", ".join(code for code in operation["responses"])
    return [*lines, f"Answers: {answers}.", ""]


def _body(operation: dict[str, Any], schemas: Mapping[str, Any]) -> list[str]:
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    if schema is None:
        return [f"Body: {', '.join(f'`{kind}`' for kind in content)}.", ""] if content else []
    shape = _resolved(schema, schemas)
    if not shape.get("properties"):
        return [f"Body: {_kind(schema)}.", ""]
    lines = ["| field | type | |", "|---|---|---|"]
    for name, field in shape["properties"].items():
        text = field.get("description", "")
        text += " Required." if name in shape.get("required", ()) else ""
        lines.append(
            f"| `{name}` | {_kind(field).replace('|', chr(92) + '|')} | {_cell(text.strip())} |"
        )
    return [*lines, ""]


def _who(method: str, path: str) -> str:
    from penstock.api.permissions import MATRIX

    row = MATRIX.get(f"{method} {path}") or MATRIX.get(f"{method} {re.sub(r':[a-z]+}', '}', path)}")
    if row is None:
        return ""
    if row.kind == "open":
        return "For everybody, without a credential."
    rights = (("analyst", row.analyst), ("admin", row.admin), ("ops", row.ops))
    return (
        "For "
        + ", ".join(f"{role} ({RIGHTS[right]})" for role, right in rights if right != "no")
        + "."
    )


def _document() -> dict[str, Any]:
    """The description of a control plane that has every room; nothing of it runs."""
    from unittest.mock import MagicMock

    from penstock.api.app import create_app
    from penstock.api.services import Services

    furnished: Any = {field.name: MagicMock() for field in fields(Services)} | {"max_body_bytes": 0}
    return create_app(Services(**furnished)).openapi()


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    return schemas[reference.rpartition("/")[2]] if reference else schema


def _kind(schema: Mapping[str, Any]) -> str:
    """A type in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2].rpartition("__")[2]
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        kinds = dict.fromkeys(_kind(choice) for choice in choices)
        return " | ".join(kind for kind in kinds if kind != "null")
    if "enum" in schema:
        return " | ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return kind + _bounds(schema)


def _bounds(schema: Mapping[str, Any]) -> str:
    low = next(
        (schema[name] for name in ("minimum", "exclusiveMinimum", "minLength") if name in schema),
        None,
    )
    high = next(
        (schema[name] for name in ("maximum", "exclusiveMaximum", "maxLength") if name in schema),
        None,
    )
    if low is None and high is None:
        return ""
    return f" {'…' if low is None else f'{low:.16g}'}–{'…' if high is None else f'{high:.16g}'}"


def _code(value: object) -> str:
    if value is None or value == {}:
        return ""
    return f"`{json.dumps(value) if isinstance(value, bool) else value}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


WRITERS: Mapping[str, Callable[[], str]] = {
    "cli.md": cli,
    "errors.md": errors,
    "http.md": http,
    "licences.md": lambda: licences.page(NOTE),
    "settings.md": settings,
}


def pages(names: Iterable[str] = WRITERS) -> dict[str, str]:
    """The pages as the code would have them, whatever the environment of whoever asks."""
    for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        del os.environ[name]
    return {name: WRITERS[name]() for name in names}


def main() -> None:
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text)


if __name__ == "__main__":
    main()
