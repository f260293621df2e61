"""The client lacks nothing of the API's description: no operation, no field, no word, no error
code.

Fields and words are in `tools/client_api.json`, which `tools.shapes` writes from the description;
here is held that it is up to date, and that the call of an operation really uses the shapes of its
request and of its answer.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import typing
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from tools.generate import API, CLIENT

from penstock.api.permissions import MATRIX
from penstock.client import definitions, errors, models, shapes, words
from tools import shapes as tool

if TYPE_CHECKING:
    from collections.abc import Mapping

METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE"}
NOT_FOR_CLIENTS = {
    "GET /metrics": "Prometheus reads it",
    "POST /api/instances/from-mapping": "the older name of POST /api/instances",
    "DELETE /api/instances/{}": "terminate does it, and says more",
    "GET /api/exports": "an older name of the list of export jobs",
    "GET /api/export-jobs": "an older name of the list of export jobs",
    "GET /api/mappings/{}/snapshots": "the list of snapshots takes mapping_id",
    "GET /api/mappings/{}/instances": "the list of instances takes mapping_id",
    "POST /api/login-links": "penstock login asks for it",
    "GET /login": "a browser opens it",
    "POST /logout": "a browser sends it",
}
MODELS: dict[str, type] = {
    "Mapping": models.MappingInfo,
    "MappingDetail": models.MappingInfo,
    "Snapshot": models.SnapshotInfo,
    "Instance": models.InstanceInfo,
    "SnapshotProgress": models.Progress,
    "InstanceProgress": models.Progress,
    "InstanceStep": models.Step,
    "NodeBody": definitions.Node,
    "EdgeBody": definitions.Edge,
    "PropertyBody": definitions.Property,
    "PrimaryKeyBody": definitions.Property,
    "DataSource": models.DataSourceInfo,
    "UserShown": models.User,
    "Bootstrapped": models.User,
    "JobDetail": models.JobInfo,
    "JobSummary": models.JobInfo,
    "Run": models.RunInfo,
}
"""Answers that are dataclasses here, with handles around the most of them."""
HANDLED = {
    "JobCancelled": "the handle is refreshed, which says more",
    "Ended": "terminate returns when it is gone",
}
WRAPPED = ("ErrorBody", "ErrorDetail", "ErrorMeta", "Meta")


@cache
def _calls() -> dict[str, frozenset[str]]:
    """Method and template of every call, with the places of the templates left blank."""
    vocabularies: dict[str, frozenset[str]] = {}
    for file in (CLIENT / "_async").glob("*.py"):
        tree = ast.parse(file.read_text())
        vocabulary = _vocabulary(tree)
        for function in ast.walk(tree):
            if isinstance(function, ast.AsyncFunctionDef):
                for operation in _called(function, tree):
                    vocabularies[operation] = vocabularies.get(operation, frozenset()) | vocabulary
    return vocabularies


def _called(function: ast.AsyncFunctionDef, tree: ast.Module) -> set[str]:
    """A template stands in the call, or in a variable first, alone or one of several in a
    dictionary; without a method beside it, it is a list's."""
    texts = {
        node.targets[0].id: _texts(node.value)
        for node in (*tree.body, *ast.walk(function))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    operations = set()
    for call in ast.walk(function):
        if isinstance(call, ast.Call):
            texts_of_call = [text for argument in call.args for text in _texts(argument, texts)]
            method = next((text for text in texts_of_call if text in METHODS), "GET")
            operations |= {
                f"{method} {_blank(text)}"
                for text in texts_of_call
                if re.match(r"/(api/|health|ready)", text)
            }
    return operations


def _texts(node: ast.expr, variables: Mapping[str, list[str]] = MappingProxyType({})) -> list[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.Dict(values=values):
            return [text for value in values for text in _texts(value)]
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            return variables.get(name, [])
    return []


def _vocabulary(tree: ast.Module) -> frozenset[str]:
    """Names of arguments, attributes and keywords, string constants, and unpacked fields."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case (
                ast.arg(arg=name)
                | ast.keyword(arg=str(name))
                | ast.Attribute(attr=name)
                | ast.Name(id=name)
            ):
                names.add(name)
            case ast.Constant(value=str(text)):
                names.add(text)
    for name in set(names):
        if isinstance(shape := getattr(shapes, name, None), type) and (
            name.endswith(("Filters", "Body"))
        ):
            names |= shape.__annotations__.keys()
    return frozenset(names)


def _blank(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


@cache
def _offered() -> set[str]:
    public = {operation for operation, row in MATRIX.items() if row.kind != "internal"}
    return {
        f"{method} {_blank(path)}"
        for method, path in (operation.split(" ") for operation in public)
        if not path.startswith(tool.APART)
    }


def _described() -> list[Any]:
    return [
        pytest.param(f"{method} {_blank(path)}", operation, id=f"{method} {path}")
        for method, path, operation in tool.operations()
        if f"{method} {_blank(path)}" not in NOT_FOR_CLIENTS
    ]


def _answers(operation: dict[str, Any]) -> set[str]:
    """The shapes of an operation's answer, without the envelope around them."""
    schemas = tool.description()["components"]["schemas"]
    answers = {
        status: answer
        for status, answer in operation["responses"].items()
        if status.startswith("2")
    }
    named = set(tool.referred(answers))
    inside = {
        inner
        for name in named
        if name.startswith(tool.WRAPPERS)
        for inner in tool.referred(schemas[name])
    }
    shapes = {name for name in named | inside if not name.startswith(tool.WRAPPERS)}
    return {tool.named(name) for name in shapes} - set(WRAPPED)


def test_every_operation_has_a_call() -> None:
    assert sorted(_offered() - _calls().keys() - NOT_FOR_CLIENTS.keys()) == []


def test_no_call_goes_to_an_operation_that_is_not_there() -> None:
    assert sorted(_calls().keys() - _offered()) == []


def test_no_reason_outlives_its_operation() -> None:
    assert sorted(NOT_FOR_CLIENTS.keys() - _offered()) == []


def test_fields_and_words_are_those_of_the_description() -> None:
    assert API.read_text() == tool.rendered(), "the API changed; run: python -m tools.shapes"


def test_every_shape_has_a_use() -> None:
    described = json.loads(API.read_text())["shapes"]
    assert sorted(described.keys() - tool.needed()) == []


@pytest.mark.parametrize(("called", "operation"), _described())
def test_a_call_takes_every_field_of_its_request(called: str, operation: dict[str, Any]) -> None:
    schemas = tool.description()["components"]["schemas"]
    bodies = list(tool.referred(operation.get("requestBody", {})))
    fields = {field for body in bodies for field in schemas[body].get("properties", {})}
    fields |= {
        parameter["name"]
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query"
    }
    assert sorted(fields - _calls()[called] - tool.PAGING) == []


@pytest.mark.parametrize(("called", "operation"), _described())
def test_a_call_gives_every_field_of_its_answer(called: str, operation: dict[str, Any]) -> None:
    for name in _answers(operation) - HANDLED.keys():
        if name in MODELS:
            class_name = MODELS[name].__name__
            assert {class_name, f"Async{class_name.removesuffix('Info')}"} & _calls()[called], (
                f"{called} answers with {name}"
            )
        else:
            assert name in _calls()[called] or _is_a_part(name), f"{called} answers with {name}"


def _is_a_part(name: str) -> bool:
    """Whether it only stands inside another answer, whose shape has it."""
    return any(
        re.search(rf"\b{name}\b", str(hint)) for hint in _hints() if not isinstance(hint, str)
    )


@cache
def _hints() -> tuple[Any, ...]:
    shown = [
        shape
        for shape in vars(shapes).values()
        if isinstance(shape, type) and typing.is_typeddict(shape)
    ]
    return tuple(hint for shape in shown for hint in typing.get_type_hints(shape).values())


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_model_has_every_field_of_what_it_is_made_from(name: str) -> None:
    ours = {field.name for field in dataclasses.fields(MODELS[name])}
    assert sorted(getattr(shapes, name).__annotations__.keys() - ours) == []


@pytest.mark.parametrize(
    ("model", "field", "expected_words"),
    [
        (models.SnapshotInfo, "status", words.SnapshotStatus),
        (models.InstanceInfo, "status", words.InstanceStatus),
        (models.Step, "status", words.StepStatus),
        (models.User, "role", words.Role),
        (models.JobInfo, "status", words.JobStatus),
        (models.RunInfo, "status", words.RunStatus),
    ],
)
def test_a_models_words_are_those_of_the_description(
    model: type, field: str, expected_words: object
) -> None:
    assert typing.get_type_hints(model)[field] == expected_words


def test_every_word_of_the_description_is_known() -> None:
    text = (CLIENT / "shapes.py").read_text() + (CLIENT / "words.py").read_text()
    enums = {
        tuple(values)
        for values in _enums([tool.components(), [o for _, _, o in tool.operations()]])
    }
    assert sorted(word for values in enums for word in values if f'"{word}"' not in text) == []


def _enums(value: object) -> Any:
    if isinstance(value, dict):
        if isinstance(values := value.get("enum"), list):
            yield values
        for inner in value.values():
            yield from _enums(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _enums(inner)


def test_every_error_code_of_the_description_has_its_exception() -> None:
    codes = {
        code
        for _, _, operation in tool.operations()
        for answer in operation["responses"].values()
        for code in answer.get("content", {}).get("application/json", {}).get("examples", {})
    }
    assert len(codes) > 20
    assert sorted(codes - errors.BY_CODE.keys()) == []


def test_every_error_code_that_a_server_can_raise_has_its_exception() -> None:
    rooms = [file for file in CLIENT.parent.rglob("*.py") if CLIENT not in file.parents]
    code_line = re.compile(r'^ +code(?:: .+)? = "([A-Z_]+)"', re.MULTILINE)
    codes = {code for file in rooms for code in code_line.findall(file.read_text())}
    assert len(codes) > 60
    assert sorted(codes - errors.BY_CODE.keys()) == []
