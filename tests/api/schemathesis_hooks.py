"""Schemathesis hooks: skip requests that would only be slow or would drain the system.

Long polls do not wait, and the limit of ten thousand items is not tested item by item; the
conformance suite covers both. A draining system answers 503, as it should. A valid idempotency key
is new each time: a used one would replay its first response, whatever else is wrong with the
request.
"""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import schemathesis

from penstock.jobs.limits import MAX_WAIT

DRY_CHECKS = {"/api/mappings/validate", "/api/recipes/validate"}
"""They answer 200 and say what is wrong with what they were shown, so no body is one that must be
refused."""


@schemathesis.hook
def before_call(
    _context: schemathesis.HookContext, case: schemathesis.Case, _kwargs: dict[str, Any]
) -> None:
    if case.headers and re.fullmatch(r"[!-~]{1,255}", str(case.headers.get("Idempotency-Key", ""))):
        case.headers["Idempotency-Key"] = uuid4().hex
    if not isinstance(case.body, dict):
        return
    wait = case.body.get("wait_seconds")
    if isinstance(wait, int | float) and 0 < wait <= MAX_WAIT:
        case.body["wait_seconds"] = 0
    if case.body.get("draining") is True:
        case.body["draining"] = False


@schemathesis.hook
def before_load_schema(_context: schemathesis.HookContext, raw_schema: dict[str, Any]) -> None:
    _without_large_arrays(raw_schema)
    for path in DRY_CHECKS & set(raw_schema["paths"]):
        raw_schema["paths"][path]["post"]["requestBody"]["content"]["application/json"][
            "schema"
        ] = {}


def _without_large_arrays(node: Any) -> None:
    if isinstance(node, dict):
        if isinstance(node.get("maxItems"), int) and node["maxItems"] > 100:
            del node["maxItems"]
        for child in node.values():
            _without_large_arrays(child)
    elif isinstance(node, list):
        for child in node:
            _without_large_arrays(child)
