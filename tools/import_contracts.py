"""Write `.importlinter` from the layers of the architecture.

    python -m tools.import_contracts          write it
    python -m tools.import_contracts --check  fail when it is out of date

Every top-level package and module of `penstock` needs a layer; one without fails.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "penstock"
TARGET = ROOT / ".importlinter"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("cli",),
    ("wiring",),
    ("api", "console", "graph_server", "worker"),
    ("operations",),
    ("graphs", "maintenance", "reconcile"),
    ("accounts", "engines", "graphdb", "http", "jobs", "launchers", "sources", "storage"),
    ("guard",),
    ("kit",),
)
"""From top to bottom. A package imports from layers below its own; packages of one layer do not
import each other."""

STANDALONE = {"client": ("widget",), "widget": ()}
"""Packages outside the layers, and what each may import."""

WITHOUT_WEB_FRAMEWORK = (
    "accounts",
    "client",
    "engines",
    "graphdb",
    "guard",
    "jobs",
    "kit",
    "launchers",
    "maintenance",
    "reconcile",
    "sources",
    "storage",
    "worker",
)
WITHOUT_DATABASE = ("graph_server", "worker")


def packages() -> list[str]:
    """The top-level packages and modules that exist."""
    folders = [p.name for p in PACKAGE.iterdir() if (p / "__init__.py").is_file()]
    modules = [p.stem for p in PACKAGE.glob("*.py") if p.stem != "__init__"]
    return sorted(folders + modules)


def render(existing: list[str]) -> str:
    layered = {name for layer in LAYERS for name in layer}
    if unknown := [name for name in existing if name not in layered and name not in STANDALONE]:
        raise SystemExit(
            f"No layer for {', '.join(unknown)}: add it to LAYERS in tools/import_contracts.py."
        )
    layers = [[name for name in layer if name in existing] for layer in LAYERS]
    sections = [
        "# Written by `python -m tools.import_contracts`; change the layers there.\n"
        "[importlinter]\nroot_package = penstock\ninclude_external_packages = True\n",
        _section(
            "layers",
            "Imports go down, and packages of one layer do not import each other",
            "layers",
            layers=[" | ".join(f"penstock.{name}" for name in layer) for layer in layers if layer],
        ),
        *(
            _section(
                name,
                f"The package {name} stands alone",
                "forbidden",
                source_modules=[f"penstock.{name}"],
                forbidden_modules=_modules(set(existing) - {name, *allowed}),
            )
            for name, allowed in STANDALONE.items()
        ),
        _section(
            "client-users",
            "Only the command line imports the client",
            "forbidden",
            source_modules=_modules(set(existing) - {"cli", "client"}),
            forbidden_modules=["penstock.client"],
            ignore_imports=["penstock -> penstock.client", "penstock -> penstock.client.errors"],
        ),
        _section(
            "web-framework",
            "The web framework stays in the packages that serve HTTP",
            "forbidden",
            source_modules=_modules(set(WITHOUT_WEB_FRAMEWORK)),
            forbidden_modules=["fastapi", "starlette", "uvicorn"],
        ),
        _section(
            "database",
            "Workers and graph servers have no database",
            "forbidden",
            source_modules=_modules(set(WITHOUT_DATABASE)),
            forbidden_modules=["asyncpg", "penstock.kit.db", "penstock.kit.postgres"],
            allow_indirect_imports=["True"],
        ),
    ]
    return "\n".join(sections)


def _modules(names: set[str]) -> list[str]:
    return [f"penstock.{name}" for name in sorted(names)]


def _section(key: str, name: str, kind: str, **fields: list[str]) -> str:
    lines = [f"[importlinter:contract:{key}]", f"name = {name}", f"type = {kind}"]
    for field, values in fields.items():
        if len(values) == 1:
            lines.append(f"{field} = {values[0]}")
        else:
            lines += [f"{field} =", *(f"    {value}" for value in values)]
    return "\n".join(lines) + "\n"


def main() -> None:
    text = render(packages())
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text() != text:
            raise SystemExit(".importlinter is out of date: run python -m tools.import_contracts.")
        return
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
