"""Example responses for the OpenAPI description, built from the fields' examples, or else from
their types and names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PREFIX = "#/components/schemas/"
_FORMATS = {
    "date-time": "2026-01-31T12:00:00Z",
    "date": "2026-01-31",
    "uuid": "0d0e1c5e-6b0f-4f43-9d6f-6a3f5d0a9a11",
    "uri": "https://penstock.example.com",
}
_PLAIN = {"integer": 1, "number": 1.0, "boolean": True, "null": None}


class Examples:
    """Builds examples from the schemas of one OpenAPI description."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas

    def of(
        self, node: Mapping[str, Any], name: str = "text", within: frozenset[str] = frozenset()
    ) -> Any:
        """`within` are the enclosing schemas: recursion ends at a schema that contains itself."""
        if "examples" in node:
            return node["examples"][0]
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return node["enum"][0]
        if "$ref" in node:
            return self._referred(node["$ref"].removeprefix(_PREFIX), name, within)
        for choice in ("anyOf", "oneOf", "allOf"):
            if choice in node:
                return self._chosen(node[choice], name, within)
        return self._typed(node, name, within)

    def _referred(self, schema: str, name: str, within: frozenset[str]) -> Any:
        return None if schema in within else self.of(self._schemas[schema], name, within | {schema})

    def _chosen(
        self, choices: Sequence[Mapping[str, Any]], name: str, within: frozenset[str]
    ) -> Any:
        """The first choice that is not null; an optional text without an example is null."""
        first = next((choice for choice in choices if choice.get("type") != "null"), choices[0])
        example = self.of(first, name, within)
        return None if example == name and {"type": "null"} in choices else example

    def _typed(self, node: Mapping[str, Any], name: str, within: frozenset[str]) -> Any:
        match node.get("type"):
            case "object" if "properties" in node:
                return {
                    field: self.of(field_schema, field, within)
                    for field, field_schema in node["properties"].items()
                }
            case "array":
                return [self.of(node["items"], name, within)] if node.get("items") else []
            case "string":
                return _FORMATS.get(node.get("format", ""), name)
            case str(kind) if kind in _PLAIN:
                return _PLAIN[kind]
            case _:
                return {}
