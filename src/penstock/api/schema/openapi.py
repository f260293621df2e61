"""The OpenAPI description: the routes, plus parameters, errors and examples common to all."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from penstock.accounts.idempotency import MAX_KEY
from penstock.api.errors import declare
from penstock.api.requests.idempotency import OTHER_PROTOCOLS, WRITES
from penstock.api.schema.examples import Examples
from penstock.kit.errors import Conflict, PayloadTooLarge, PenstockError, StaleAttempt

_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key and body within 24 hours replay the first response;"
    " another body is 409.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": r"^[!-~]+$"},
    "example": "0d0e1c5e-6b0f-4f43-9d6f-6a3f5d0a9a11",
}


class DescribedApi(FastAPI):
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            schema = super().openapi()
            examples = Examples(schema["components"]["schemas"])
            for path, operations in schema["paths"].items():
                for method, operation in operations.items():
                    _complete(operation, method.upper(), path)
                    _illustrate(operation, examples)
        return super().openapi()


def _complete(operation: dict[str, Any], method: str, path: str) -> None:
    if method in WRITES and path.startswith("/api/internal/"):
        _declare(operation, StaleAttempt)
    elif method in WRITES and path.startswith("/api/") and not path.startswith(OTHER_PROTOCOLS):
        operation.setdefault("parameters", []).append(_KEY)
        _declare(operation, Conflict)
    if "requestBody" in operation:
        _declare(operation, PayloadTooLarge)


def _illustrate(operation: dict[str, Any], examples: Examples) -> None:
    for status, answer in operation["responses"].items():
        content = answer.get("content", {}).get("application/json", {})
        if status.startswith("2") and content.get("schema"):
            content.setdefault("example", examples.of(content["schema"]))


def _declare(operation: dict[str, Any], kind: type[PenstockError]) -> None:
    [(status, entry)] = declare(kind).items()
    content = {
        "schema": {"$ref": "#/components/schemas/ErrorBody"},
        **entry["content"]["application/json"],
    }
    response = {"description": entry["description"], "content": {"application/json": content}}
    operation["responses"].setdefault(str(status), response)
