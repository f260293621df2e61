"""The registry of graph backends by name.

A process opens one backend: their libraries cannot be loaded together.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from penstock.graphdb.contract import GraphEngine, GraphSchema

DEFAULT = "ladybug"
_MODULES = {
    "falkordb": "penstock.graphdb.falkordb.engine",
    "ladybug": "penstock.graphdb.embedded.ladybug",
    "ryugraph": "penstock.graphdb.embedded.ryugraph",
}
BACKENDS = tuple(_MODULES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The options of `open_engine`.

    `folder` exists and belongs to the engine; `memory_bytes` is the size of its cache; `url` is the
    address of a separate server, on which `name` identifies the graph; `schema` is that of a sealed
    graph to reopen, and None for an empty one.
    """

    folder: Path
    memory_bytes: int
    threads: int
    url: str | None = None
    schema: GraphSchema | None = None
    name: str = "penstock"


def open_engine(backend: str, opening: Opening) -> GraphEngine:
    """Import the backend's library and open a database."""
    return cast("Callable[[Opening], GraphEngine]", _driver(backend).open_engine)(opening)


def warm_up(backend: str) -> None:
    """Import the backend's library early, which is slow; `open_engine` reports errors."""
    with suppress(InvalidInput):
        _driver(backend)


def _driver(backend: str) -> ModuleType:
    if backend not in _MODULES:
        raise InvalidInput(
            f"There is no graph backend {backend[:80]!r}.", hint=f"Use {', '.join(BACKENDS)}."
        )
    try:
        return import_module(_MODULES[backend])
    except ModuleNotFoundError as e:
        raise InvalidInput(
            f"The backend {backend} needs {e.name}, which is not installed.",
            hint=f"pip install 'penstock[{backend}]'",
        ) from e
