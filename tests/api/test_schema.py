"""The OpenAPI description, and whether responses conform to it."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from tests.api.control_plane import OPERATOR, SERVICE
from tests.api.running_api import running_api
from tests.api.test_server import free_port, process, ready

if TYPE_CHECKING:
    from tests.api.control_plane import Edge

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,negative_data_rejection,unsupported_method,allow_header_conformance,ignored_auth"
)
EXAMPLES = os.environ.get("PENSTOCK_SCHEMATHESIS_EXAMPLES")
"""An hour's worth before a release: 1000."""
PUBLIC = ["--exclude-path-regex", "^/api/internal"]
SEED = os.environ.get("PENSTOCK_FUZZ_SEED", datetime.now(UTC).strftime("%Y%m%d"))
"""Another one each day; a failure prints it, and the variable replays it."""
SEQUENCES = EXAMPLES or "2"
IN_A_GUIDE = (
    "/api/recipes",
    "/api/runs",
    "/api/uploads",
    "/api/sources",
    "/api/internal/runs",
    "/api/internal/jobs/{",
)
"""Their bodies are documents, which the guides show as a whole."""


def identities(keys: dict[str, str]) -> dict[str, list[str]]:
    """What schemathesis is told to be. Ops reaches the most, and is tried with every corner of
    every field."""
    return {
        "analyst": [*_shows(keys["analyst"]), *PUBLIC, *_phases("fuzzing")],
        "admin": [*_shows(keys["admin"]), *PUBLIC, *_phases("fuzzing")],
        "ops": [*_shows(keys["ops"]), *PUBLIC, *_phases("coverage")],
        "service": [
            *_shows(SERVICE), "-H", "X-Component: worker", "--include-path-regex", "internal",
            *_phases("coverage"),
        ],
        "anonymous": _phases("examples"),
    }  # fmt: skip


def _phases(briefly: str) -> list[str]:
    return [
        "--phases",
        briefly if EXAMPLES is None else "examples,coverage,fuzzing",
        "-n",
        EXAMPLES or "2",
    ]


def _shows(token: str) -> list[str]:
    return ["-H", f"Authorization: Bearer {token}"]


async def test_no_request_breaks_it_and_no_answer_surprises(database: str, tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with process(database, port, tmp_path):
        await ready(url)
        keys = await people(url)
        reports = await asyncio.gather(
            *(_try(url, options, tmp_path) for options in identities(keys).values())
        )
    assert not any(reports), "\n".join(reports)


async def test_no_sequence_of_requests_breaks_it(database: str, tmp_path: Path) -> None:
    """What one answer names is asked of the next operation, as each of four identities."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with process(database, port, tmp_path):
        await ready(url)
        keys = await people(url)
        stateful = ["--phases", "stateful", "-n", SEQUENCES]
        reports = [
            await _try(url, [*identity, *PUBLIC, *stateful], tmp_path)
            for identity in ([], *(_shows(key) for key in keys.values()))
        ]
    assert not any(reports), "\n".join(reports)


async def people(url: str) -> dict[str, str]:
    """A key of a user of each role."""
    keys = {}
    async with httpx2.AsyncClient(base_url=url, trust_env=False) as client:
        client.headers["Authorization"] = f"Bearer {OPERATOR}"
        for role in ("analyst", "admin", "ops"):
            await client.post("/api/users", json={"username": f"the-{role}", "role": role})
            keys[role] = str((await client.post(f"/api/users/the-{role}/api-keys")).json()["key"])
    return keys


async def _try(url: str, options: list[str], folder: Path) -> str:
    """What schemathesis found; nothing, if there is nothing."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/api/openapi.json", *options]
    command += ["--checks", CHECKS, "--seed", SEED, "--no-color", "--warnings", "off"]
    command += ["--suppress-health-check", "all", "--request-timeout", "30"]
    environment = os.environ | {
        "SCHEMATHESIS_HOOKS": "tests.api.schemathesis_hooks",
        "PYTHONPATH": str(Path.cwd()),
    }
    run = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await run.communicate()
    return "" if run.returncode == 0 else f"PENSTOCK_FUZZ_SEED={SEED}\n{output.decode()}"


async def test_every_operation_is_described(database: str, edge: Edge, tmp_path: Path) -> None:
    async with running_api(database, edge, tmp_path / "home") as api:
        schema = (await api.ann.get("/api/openapi.json")).json()
    assert {"/api/instances", "/api/mappings", "/api/runs"} <= set(schema["paths"]), (
        "all rooms are there"
    )
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            where = (method, path)
            assert operation["summary"], where
            if path.startswith("/api/"):
                assert {"401", "403", "422", "503"} <= set(operation["responses"]), where
                assert operation["security"], where
            if "requestBody" in operation and not path.startswith(IN_A_GUIDE):
                assert "example" in resolved(schema, operation["requestBody"]), where
            for status, answer in operation["responses"].items():
                content = answer.get("content", {}).get("application/json", {"example": None})
                assert content.keys() & {"example", "examples"}, (*where, status)


async def test_the_example_of_an_instance_is_one_as_a_whole(
    database: str, edge: Edge, tmp_path: Path
) -> None:
    async with running_api(database, edge, tmp_path / "home") as api:
        schema = (await api.ann.get("/api/openapi.json")).json()
    answer = schema["paths"]["/api/instances/{instance_id}"]["get"]["responses"]["200"]
    shown = answer["content"]["application/json"]["example"]["data"]
    assert shown["instance_url"].endswith(f"/wrapper/{shown['url_slug']}")
    assert (shown["status"], shown["progress"]["phase"], shown["error_message"]) == (
        "running",
        "ready",
        None,
    )
    assert shown["created_at"].endswith("Z")


def resolved(schema: dict[str, Any], node: Any) -> str:
    """A part of the description as text, with what it refers to."""
    text = str(node)
    for name in set(re.findall(r"#/components/schemas/([^']+)'", text)):
        text += resolved(schema, schema["components"]["schemas"][name])
    return text
