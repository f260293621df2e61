"""Every operation of the API's description has a call in the client, or a reason why not."""

from __future__ import annotations

import ast
import re

from tools.unasync import CLIENT

from penstock.api.matrix import MATRIX

METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE"}
NOT_FOR_CLIENTS = {
    "GET /metrics": "Prometheus reads it",
    "GET /ready": "an orchestrator asks it",
    "POST /api/instances/from-mapping": "the older name of POST /api/instances",
    "DELETE /api/instances/{}": "terminate does it, and says more",
    "GET /api/exports": "an older name of the list of export jobs",
    "GET /api/export-jobs": "an older name of the list of export jobs",
    "GET /api/mappings/{}/snapshots": "the list of snapshots takes mapping_id",
    "GET /api/mappings/{}/instances": "the list of instances takes mapping_id",
    "GET /api/runs/{}/events": "wait() asks; browsers listen",
    "GET /api/uploads/{}": "upload() answers with it",
    "GET /api/schedules": "operators set schedules up by HTTP",
    "GET /api/schedules/{}": "operators set schedules up by HTTP",
    "PUT /api/schedules/{}": "operators set schedules up by HTTP",
    "DELETE /api/schedules/{}": "operators set schedules up by HTTP",
    "POST /api/sources": "ps.sources is the registry of data sources, which recipes name",
    "GET /api/sources": "ps.sources is the registry of data sources, which recipes name",
    "GET /api/sources/{}/preview": "not yet",
    "POST /api/sources/{}/load-scoped": "not yet",
}
SPREAD = {
    "/api/config/{}": ("lifecycle", "concurrency", "maintenance", "export"),
    "/api/cluster/{}": ("health", "instances", "metrics"),
}


def _called() -> set[str]:
    """Method and template of every call, with the places of the templates left blank."""
    found = set()
    for file in (CLIENT / "_async").glob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call):
                texts = [_text(argument) for argument in call.args]
                methods = [text for text in texts if text in METHODS] or ["GET"]
                for template in (text for text in texts if text and text.startswith(("/api/", "/wrapper/", "/health"))):
                    found |= {f"{methods[0]} {path}" for path in _spread(_blank(template))}
    return found | _assigned()


def _assigned() -> set[str]:
    """Templates that stand in a variable first."""
    text = (CLIENT / "_async" / "operations.py").read_text()
    return {f"GET {_blank(template)}" for template in re.findall(r'template = "(/api[^"]+)"', text)}


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _spread(path: str) -> list[str]:
    return [path.replace("{}", word) for word in SPREAD[path]] if path in SPREAD else [path]


def _blank(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


def _offered() -> set[str]:
    public = {operation for operation, row in MATRIX.items() if row.kind != "internal"}
    apart = ("/wrapper", "/api/iceberg", "/tables")
    return {
        f"{method} {_blank(path)}"
        for method, path in (operation.split(" ") for operation in public)
        if not path.startswith(apart)
    }


def test_every_operation_has_a_call() -> None:
    assert sorted(_offered() - _called() - NOT_FOR_CLIENTS.keys()) == []


def test_no_call_goes_to_an_operation_that_is_not_there() -> None:
    theirs = {call for call in _called() if not call.split(" ")[1].startswith(("/wrapper", "/health"))}
    assert sorted(theirs - _offered()) == []


def test_no_reason_outlives_its_operation() -> None:
    assert sorted(NOT_FOR_CLIENTS.keys() - _offered()) == []
