"""HTTP routes of algorithms: `/algo` for built-in ones, `/networkx` for NetworkX, with the same
five routes each."""

import asyncio
import re
from collections.abc import Mapping
from typing import Annotated

import orjson
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from penstock.graph_server.algorithms.execution import Execution, Kind, Request, brief
from penstock.graph_server.algorithms.executions import Executions
from penstock.graph_server.http.body_limit import GuardedRoute
from penstock.graph_server.http.identity import Caller, Trusted
from penstock.graphdb.algorithms.allowed import ALLOWED
from penstock.graphdb.algorithms.catalog import CATALOG, CATEGORIES, algorithm, direction
from penstock.graphdb.algorithms.functions import function
from penstock.graphdb.algorithms.parameters import check
from penstock.graphdb.algorithms.selection import Selection, select
from penstock.graphdb.errors import CapabilityMissing
from penstock.kit.errors import InvalidInput, PermissionDenied
from penstock.kit.json_value import JsonValue

PATIENCE_SECONDS = 5.0
DEFAULT_TIMEOUT_SECONDS = 3600.0
_PROPERTY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_ALSO_AT_THE_TOP = ("source_id", "target_id", "max_depth")


Name = Annotated[str, Field(max_length=255)]
NodeId = Annotated[str, Field(max_length=8192)]


class AlgorithmRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    node_label: Name | None = Field(None, description="One label; none means all.")
    node_labels: list[Name] | None = Field(None, max_length=1000, description="Several labels.")
    edge_type: Name | None = Field(None, description="One relationship type; none means all.")
    relationship_types: list[Name] | None = Field(
        None, max_length=1000, description="Several types."
    )
    result_property: Name | None = Field(
        None, description="Write one value per node here; needs the right to write."
    )
    parameters: dict[Name, JsonValue] = Field(
        default_factory=dict, max_length=100, description="As the algorithm's listing says."
    )
    timeout_ms: Annotated[int, Field(ge=1, le=86_400_000)] | None = None
    directed: bool | None = Field(
        None, description="Whether edges have a direction; each algorithm has its default."
    )
    weight_property: Name | None = Field(None, description="An edge property that is a number.")
    source_id: NodeId | int | None = None
    target_id: NodeId | int | None = None
    max_depth: int | None = None

    def labels(self) -> list[str] | None:
        return _one_or_many("node_label", self.node_label, "node_labels", self.node_labels)

    def types(self) -> list[str] | None:
        return _one_or_many(
            "edge_type", self.edge_type, "relationship_types", self.relationship_types
        )

    def given(self) -> dict[str, JsonValue]:
        top = {name: getattr(self, name) for name in _ALSO_AT_THE_TOP}
        return self.parameters | {name: value for name, value in top.items() if value is not None}


def router(
    executions: Executions, *, backend: str = "", patience: float = PATIENCE_SECONDS
) -> APIRouter:
    """All ten routes; one that takes longer than `patience` seconds is answered while it runs."""
    both = APIRouter()
    kinds: tuple[tuple[Kind, str], ...] = (("native", "/algo"), ("networkx", "/networkx"))
    for kind, prefix in kinds:
        both.include_router(_listing(kind), prefix=prefix, tags=["algorithms"])
        both.include_router(_watching(executions, kind), prefix=prefix, tags=["algorithms"])
        both.include_router(
            _running(executions, kind, backend, patience), prefix=prefix, tags=["algorithms"]
        )
    return both


def _listing(kind: Kind) -> APIRouter:
    routes = APIRouter(route_class=GuardedRoute)

    @routes.get("/algorithms")
    async def list_algorithms(
        _caller: Trusted, category: Annotated[str | None, Query()] = None
    ) -> Response:
        if category is not None and category not in CATEGORIES:
            raise InvalidInput(
                f"category must be one of {', '.join(CATEGORIES)}.", parameter="category"
            )
        names = CATALOG if kind == "native" else ALLOWED
        described = await asyncio.to_thread(
            lambda: [_described(kind, name) for name in sorted(names)]
        )
        algorithms = [one for one in described if category in (None, one["category"])]
        return _answer({"algorithms": algorithms, "total": len(algorithms)})

    @routes.get("/algorithms/{name}")
    async def get_algorithm(_caller: Trusted, name: str) -> Response:
        return _answer(await asyncio.to_thread(_described, kind, name))

    return routes


def _watching(executions: Executions, kind: Kind) -> APIRouter:
    routes = APIRouter(route_class=GuardedRoute)

    @routes.get("/status/{execution_id}")
    async def get_status(_caller: Trusted, execution_id: str) -> Response:
        return _answer(told(executions, executions.get(execution_id)))

    @routes.get("/executions")
    async def list_executions(_caller: Trusted) -> Response:
        rows = [told(executions, e) | {"result": brief(e.result)} for e in executions.listed(kind)]
        return _answer({"executions": rows, "total": len(rows)})

    @routes.delete("/executions/{execution_id}")
    async def cancel(caller: Trusted, execution_id: str) -> Response:
        execution = executions.get(execution_id)
        if not caller.may_write and caller.username != execution.request.username:
            raise PermissionDenied(
                "Only the user who started an algorithm, or one with write access, can cancel it."
            )
        return _answer(told(executions, await executions.cancel(execution_id)))

    return routes


def _running(executions: Executions, kind: Kind, backend: str, patience: float) -> APIRouter:
    routes = APIRouter(route_class=GuardedRoute)

    @routes.post("/{name}", responses={202: {"description": "Still running; ask its status."}})
    async def run(caller: Trusted, name: str, body: AlgorithmRequest | None = None) -> Response:
        # In a thread: the first of NetworkX's imports it.
        options = body or AlgorithmRequest()
        request = await asyncio.to_thread(checked, executions, kind, name, options, caller, backend)
        execution = executions.start(request)
        try:
            await asyncio.wait_for(execution.ended.wait(), patience)
        except TimeoutError:
            return _answer(told(executions, execution), 202)
        if execution.error is not None:
            execution.error.details.setdefault("execution_id", execution.id)
            raise execution.error
        return _answer(told(executions, execution))

    return routes


def checked(
    executions: Executions,
    kind: Kind,
    name: str,
    body: AlgorithmRequest,
    caller: Caller,
    backend: str,
) -> Request:
    """Everything that can be refused before a process is started."""
    selecting = _native if kind == "native" else _networkx
    suffixes, parameters = _result_suffixes(kind, name), body.given()
    if body.result_property is not None:
        caller.must_write()
    capabilities = executions.graph().engine.capabilities
    capability = "native_algorithms" if kind == "native" else "networkx"
    if not getattr(capabilities, capability):
        raise CapabilityMissing.of(backend, capability)
    selection = selecting(executions, name, body)
    _check_property(executions, body.result_property, selection, name, suffixes, backend)
    return Request(
        kind=kind,
        name=name,
        selection=selection,
        parameters=parameters,
        directed=body.directed,
        result_property=body.result_property,
        timeout=DEFAULT_TIMEOUT_SECONDS if body.timeout_ms is None else body.timeout_ms / 1000,
        username=caller.username or "control-plane",
    )


def _native(executions: Executions, name: str, body: AlgorithmRequest) -> Selection:
    chosen = algorithm(name)
    parameters = check(chosen.parameters, body.given())
    direction(chosen, body.directed)
    if body.weight_property is not None and chosen.weights == "ignored":
        raise InvalidInput(
            f"weight_property: {name} knows no weights.", parameter="weight_property"
        )
    coordinates = (
        ["x_property", "y_property"] if parameters.get("heuristic", "none") != "none" else []
    )
    return select(
        executions.graph().schema,
        labels=body.labels(),
        types=body.types(),
        weight=body.weight_property,
        node_properties=[str(parameters[name]) for name in coordinates],
    )


def _networkx(executions: Executions, name: str, body: AlgorithmRequest) -> Selection:
    chosen = function(name)
    chosen.check(body.given())
    of_nodes, of_edges = chosen.properties(body.given(), body.weight_property)
    return select(
        executions.graph().schema,
        labels=body.labels(),
        types=body.types(),
        weight=chosen.edge_weight(body.given(), body.weight_property),
        node_properties=of_nodes,
        edge_properties=of_edges,
    )


def _check_property(
    executions: Executions,
    result_property: str | None,
    selection: Selection,
    algorithm_name: str,
    suffixes: tuple[str, ...],
    backend: str,
) -> None:
    if result_property is None:
        return
    if not suffixes:
        raise InvalidInput(
            f"result_property: {algorithm_name} gives no value per node.",
            hint="Leave it out; the result is in the answer.",
            parameter="result_property",
        )
    if not _PROPERTY.fullmatch(result_property):
        raise InvalidInput(
            "result_property must be 1 to 63 letters, digits and _, not beginning with a digit.",
            parameter="result_property",
        )
    graph = executions.graph()
    if not graph.engine.capabilities.write_back:
        raise CapabilityMissing.of(backend, "write_back")
    names = {f"{result_property}{suffix}" for suffix in suffixes}
    for table in graph.schema.nodes:
        if table.label in selection.results and names & {p.name for p in table.columns}:
            raise InvalidInput(
                f"result_property: {table.label}.{result_property} comes from the mapping and is"
                " never overwritten.",
                hint="Choose another name.",
                parameter="result_property",
            )


def _answer(content: Mapping[str, object], status: int = 200) -> Response:
    """Written at once: a result may hold a hundred thousand edges, which the framework would walk
    one by one."""
    return Response(
        orjson.dumps(content, option=orjson.OPT_UTC_Z), status, media_type="application/json"
    )


def _described(kind: Kind, name: str) -> dict[str, JsonValue]:
    return algorithm(name).describe() if kind == "native" else function(name).describe()


def _result_suffixes(kind: Kind, name: str) -> tuple[str, ...]:
    """What is added to the result property's name, a column each; none without values per node."""
    if kind == "networkx":
        return function(name).suffixes
    chosen = algorithm(name)
    return chosen.suffixes if chosen.per_node else ()


def told(executions: Executions, execution: Execution) -> dict[str, object]:
    request, error = execution.request, execution.error
    labels = request.selection.results
    elapsed = int(executions.elapsed(execution) * 1000)
    return {
        "execution_id": execution.id,
        "algorithm_name": request.name,
        "algorithm_type": request.kind,
        "status": execution.status,
        "started_at": execution.started_at,
        "completed_at": execution.completed_at,
        "username": request.username,
        "node_label": labels[0] if len(labels) == 1 else None,
        "node_labels": list(labels),
        "result_property": request.result_property,
        "nodes_updated": execution.nodes_updated,
        "duration_ms": None if execution.duration is None else elapsed,
        "elapsed_ms": elapsed,
        "progress_percent": int(execution.progress * 100),
        "error_code": None if error is None else error.code,
        "error_message": None if error is None else error.message,
        "result": execution.result,
    }


def _one_or_many(
    one: str, single: str | None, many: str, several: list[str] | None
) -> list[str] | None:
    if single is not None and several is not None:
        raise InvalidInput(f"Give {one} or {many}, not both.", parameter=many)
    return several if single is None else [single]
