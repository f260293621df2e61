"""Finds the unbounded fields of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import TypeAdapter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fastapi import FastAPI

SIZED = {"list", "set", "frozenset", "dict", "str", "bytes", "generator"}
NOT_INPUT = {"metadata", "serialization", "cls", "schema_ref"}


class Search:
    """Walks a validator's schema for values of unbounded size."""

    def __init__(self) -> None:
        self.places: set[str] = set()
        self._definitions: dict[str, object] = {}
        self._visited: set[str] = set()

    def visit(self, node: object, path: str) -> None:
        if isinstance(node, list | tuple):
            for part in node:
                self.visit(part, path)
        elif isinstance(node, dict) and not _is_bounded(node):
            self._visit(node, path)

    def _visit(self, node: dict[str, Any], path: str) -> None:
        match node.get("type"):
            case "definitions":
                self._definitions |= {part["ref"]: part for part in node["definitions"]}
            case "definition-ref":
                self._follow(node["schema_ref"], path)
            case "model":
                path = node["cls"].__name__
            case kind if kind in SIZED and "max_length" not in node:
                self.places.add(f"{path}: {kind}")
        for key, part in node.items():
            if key == "fields" and isinstance(part, dict):
                for name, field in part.items():
                    self.visit(field, f"{path}.{name}")
            elif key not in NOT_INPUT:
                self.visit(part, path)

    def _follow(self, name: str, path: str) -> None:
        if name not in self._visited and name in self._definitions:
            self._visited.add(name)
            self.visit(self._definitions[name], path)


def _is_bounded(node: dict[str, Any]) -> bool:
    """A length check after the field's own validator, as for secrets; or any JSON, which only the
    body limit bounds."""
    is_checked = "maxLength" in node.get("metadata", {}).get("pydantic_js_updates", {})
    return is_checked or "JsonValue" in str(node.get("ref"))


def bodies(app: FastAPI) -> list[tuple[str, Any]]:
    """The routes with a body model, and the models."""
    return list(_bodies(app.state.routes))


def _bodies(routes: Iterable[object]) -> Iterator[tuple[str, Any]]:
    for route in routes:
        nested = getattr(route, "original_router", None)
        if isinstance(nested, APIRouter):
            yield from _bodies(nested.routes)
        elif isinstance(route, APIRoute) and route.body_field is not None:
            yield route.path, route.body_field.field_info.annotation


def all_unbounded(shapes: Iterable[tuple[str, Any]]) -> set[str]:
    places: set[str] = set()
    for path, shape in shapes:
        search = Search()
        search.visit(TypeAdapter(shape).core_schema, path)
        places |= search.places
    return places
