"""`penstock config`: the settings in force and their origins; secrets are never shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from penstock.cli.output import MISSING, Json, complain, emit, out
from penstock.cli.tabular import table

if TYPE_CHECKING:
    from penstock.cli.documents import Setting
    from penstock.wiring.settings import Settings

HIDDEN = "••••••"
INSIDE = ("catalogs", "maintenance_engines")
"""Settings whose values are read by others: whatever stands in them may be a credential."""


def config(name: str | None = None, *, json: Json = False) -> int:
    """Show the settings in force, or one: its value, where it comes from (default, file, secret,
    environment)."""
    from penstock.wiring.settings import load

    settings = load()
    origins = _origins(settings)
    shown: dict[str, Setting] = {
        field: {"value": _shown(settings, field), "from": origins[field]}
        for field in type(settings).model_fields
    }
    if name is not None and name not in shown:
        complain(f"There is no setting {name!r}.", "penstock config lists them all.")
        return MISSING
    selected = shown if name is None else {name: shown[name]}
    emit(selected, as_json=json, render=lambda: _print(selected))
    return 0


def _origins(settings: Settings) -> dict[str, str]:
    """The last place that says something wins; this walks them in the order in which `load` lets
    them."""
    import tomllib

    from penstock.kit.config import default_home

    file = Path(os.environ.get("PENSTOCK_CONFIG") or default_home() / "penstock.toml")
    in_file = tomllib.loads(file.read_text()) if file.is_file() else {}
    folder = os.environ.get("PENSTOCK_SECRETS_DIR")
    origins = {}
    for name in type(settings).model_fields:
        secret = Path(folder) / f"penstock_{name}" if folder else None
        if f"PENSTOCK_{name.upper()}" in os.environ:
            origins[name] = f"PENSTOCK_{name.upper()}"
        elif secret is not None and secret.is_file():
            origins[name] = str(secret)
        else:
            origins[name] = str(file) if name in in_file else "default"
    return origins


def _shown(settings: Settings, name: str) -> object:
    from pydantic import SecretStr

    value = getattr(settings, name)
    if isinstance(value, SecretStr):
        return HIDDEN
    if name in INSIDE and isinstance(value, dict):
        return {key: dict.fromkeys(inner, HIDDEN) | _plain(inner) for key, inner in value.items()}
    if isinstance(value, Path):
        return str(value)
    return _without_password(value) if isinstance(value, str) else value


def _plain(inner: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in inner.items() if key == "type"}


def _without_password(text: str) -> str:
    from penstock.kit.logging import scrub

    return scrub(text)


def _print(selected: dict[str, Setting]) -> None:
    drawn = table("setting", "value", "from")
    for name, entry in selected.items():
        value = "" if entry["value"] is None else str(entry["value"])
        drawn.add_row(
            Text(name),
            Text(value),
            Text(entry["from"], style="dim" if entry["from"] == "default" else ""),
        )
    out.print(drawn)
