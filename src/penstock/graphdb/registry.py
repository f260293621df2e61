"""The backends by name. One process opens one: their libraries cannot be loaded side by side."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from penstock.graphdb.contract import GraphEngine

DEFAULT = "ladybug"
_MODULES = {
    "falkordb": "penstock.graphdb.falkordb",
    "ladybug": "penstock.graphdb.ladybug",
    "ryugraph": "penstock.graphdb.ryugraph",
}
BACKENDS = tuple(_MODULES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """`folder` is the engine's own and exists; `memory_bytes` is for its cache; `url` is for a server elsewhere."""

    folder: Path
    memory_bytes: int
    threads: int
    url: str | None = None


def open_engine(backend: str, opening: Opening) -> GraphEngine:
    """Import the backend's library and open an empty database."""
    if backend not in _MODULES:
        raise InvalidInput(f"There is no graph backend {backend[:80]!r}.", hint=f"Use {', '.join(BACKENDS)}.")
    try:
        driver = import_module(_MODULES[backend])
    except ModuleNotFoundError as e:
        raise InvalidInput(
            f"The backend {backend} needs {e.name}, which is not installed.", hint=f"pip install 'penstock[{backend}]'"
        ) from e
    return cast("Callable[[Opening], GraphEngine]", driver.open_engine)(opening)
