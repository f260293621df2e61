"""What the client is made of: light to import, the same in both faces, and found without being
told."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tools.generate import CLIENT, files

import penstock
from penstock.client import models
from penstock.client.decoding import decode
from penstock.client.definitions import definition, edge, node
from penstock.client.durations import iso
from penstock.client.work import ExecutionInfo

if TYPE_CHECKING:
    from pathlib import Path

MODULES = sorted(file.name for file in (CLIENT / "_async").glob("*.py"))


def test_what_is_generated_is_what_its_sources_say() -> None:
    assert {file: file.read_text() for file in files()} == files(), "run: make generate"


def test_there_is_no_module_in_one_face_only() -> None:
    assert sorted(file.name for file in (CLIENT / "_sync").glob("*.py")) == MODULES


@pytest.mark.parametrize("name", MODULES)
def test_nothing_of_the_synchronous_face_is_asynchronous(name: str) -> None:
    text = (CLIENT / "_sync" / name).read_text()
    kinds = {type(node) for node in ast.walk(ast.parse(text))}
    assert kinds & {ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await} == set()
    assert re.findall(r"\b(?:Async[A-Z]\w*|anyio|_async)\b", text) == []


LIGHT = {
    "annotated_doc",
    "anyio",
    "certifi",
    "h11",
    "httpcore2",
    "httpx2",
    "idna",
    "penstock",
    "sniffio",
    "truststore",
    "typing_extensions",
}
"""What the client may bring with it, beside Python's own; a package that is new here costs
everybody's start."""


def _loaded(code: str) -> list[str]:
    completed = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return completed.stdout.split()


def test_importing_the_client_loads_nothing_of_the_server() -> None:
    loaded = _loaded("import penstock; penstock.connect; penstock.AsyncClient; penstock.errors")
    assert {name.split(".")[1] for name in loaded if name.startswith("penstock.")} == {"client"}


def test_importing_the_client_loads_nothing_heavy() -> None:
    loaded = set(_loaded("import penstock; penstock.connect('http://127.0.0.1:1')")) - set(
        _loaded("0")
    )
    packages = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    assert {name for name in packages if not name.startswith("_")} - LIGHT == set()
    assert "penstock.client.shapes" not in loaded


def test_importing_the_package_alone_loads_no_more_than_itself() -> None:
    assert [name for name in _loaded("import penstock") if name.startswith("penstock")] == [
        "penstock"
    ]


def test_the_local_control_plane_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PENSTOCK_URL", "PENSTOCK_API_KEY", "PENSTOCK_USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    with pytest.raises(penstock.errors.Unreachable, match="penstock up"):
        penstock.connect()
    (tmp_path / "run").mkdir()
    (tmp_path / "secrets").mkdir()
    (tmp_path / "run" / "up.json").write_text(
        json.dumps({"url": "http://127.0.0.1:1/", "pid": os.getpid()})
    )
    (tmp_path / "secrets" / "operator_token").write_text("secret\n")
    assert penstock.connect().url == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30m", "PT1800S"),
        ("2h", "PT7200S"),
        ("1d12h", "PT129600S"),
        ("PT5M", "PT5M"),
        (timedelta(minutes=1), "PT60S"),
        (None, None),
    ],
)
def test_spans_of_time_as_people_write_them(
    text: str | timedelta | None, expected: str | None
) -> None:
    assert iso(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "2 weeks", "h2"])
def test_what_is_no_span_of_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no span of time"):
        iso(text)


def test_definitions_are_short_to_write_and_whole_on_the_wire() -> None:
    assert definition(node("Person", "SELECT 1", "id", "INT64", name="STRING")) == {
        "label": "Person",
        "sql": "SELECT 1",
        "primary_key": {"name": "id", "type": "INT64"},
        "properties": [{"name": "name", "type": "STRING"}],
    }
    wire = definition(edge("KNOWS", ("Person", "Person"), "SELECT 2", ("a", "b")))
    assert (wire["from_node"], wire["to_key"], wire["properties"]) == ("Person", "b", [])


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        (models.DataSourceInfo, {"id": 1}),
        (models.InstanceInfo, {"id": 1}),
        (models.JobInfo, {"id": 1}),
        (models.MappingInfo, {"id": 1}),
        (models.Progress, {"phase": "ready"}),
        (models.RunInfo, {"run_id": 1}),
        (models.SnapshotInfo, {"id": 1}),
        (models.Step, {"name": "load"}),
        (models.User, {"username": "ada"}),
        (ExecutionInfo, {"execution_id": "x"}),
    ],
)
def test_an_older_server_may_say_less(kind: type, first: dict[str, object]) -> None:
    decoded = decode(kind, first)
    assert {name: getattr(decoded, name) for name in first} == first


def test_a_newer_server_may_say_more() -> None:
    info = decode(
        models.MappingInfo,
        {
            "id": 1,
            "owner_username": "ada",
            "name": "M",
            "created_at": "2026-11-15T10:00:00Z",
            "mood": "good",
            "node_definitions": [definition(node("A", "SELECT 1", "id"))],
        },
    )
    assert info.raw["mood"] == "good"
    assert info.created_at is not None
    assert info.created_at.utcoffset() == timedelta(0)
    assert info.node_definitions[0].primary_key.name == "id"
