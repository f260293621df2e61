"""Routes about the server: schema, lock, status, health and metrics. They never ask the engine.

Health, readiness and metrics need no token: launchers and Prometheus read them.
"""

from datetime import UTC, datetime

from fastapi import APIRouter, Response

from penstock.graph_server.algorithms.write_lock import WriteLock
from penstock.graph_server.engine.engine import Engine
from penstock.graph_server.http.body_limit import GuardedRoute
from penstock.graph_server.http.identity import Trusted
from penstock.graph_server.queries.results import dump
from penstock.graph_server.served_graph import Graph, Served
from penstock.graphdb.contract import EdgeTable, NodeTable, Property


def router(served: Served) -> APIRouter:
    routes = APIRouter(route_class=GuardedRoute)

    @routes.get("/health")
    async def health() -> Response:
        return _json({"status": "healthy", "timestamp": datetime.now(UTC)})

    @routes.get("/ready")
    async def ready() -> Response:
        is_ready = served.state == "running"
        return _json({"ready": is_ready, "status": served.state}, status=200 if is_ready else 503)

    @routes.get("/schema")
    async def schema(caller: Trusted) -> Response:  # noqa: ARG001
        return _json(describe(served.graph))

    @routes.get("/lock")
    async def lock(caller: Trusted) -> Response:  # noqa: ARG001
        return _json({"lock": holding(served.lock)})

    @routes.get("/status")
    async def status(caller: Trusted) -> Response:  # noqa: ARG001
        return _json(_status(served))

    @routes.get("/metrics")
    async def metrics() -> Response:
        return Response(_metrics(served), media_type="text/plain; version=0.0.4")

    return routes


def describe(graph: Graph) -> dict[str, object]:
    return {
        "node_tables": [_node(graph, table) for table in graph.schema.nodes],
        "edge_tables": [_edge(graph, table) for table in graph.schema.edges],
        "total_nodes": graph.node_count,
        "total_edges": graph.edge_count,
    }


def holding(lock: WriteLock) -> dict[str, object]:
    holder = lock.holding
    names = (
        "holder_id",
        "holder_username",
        "algorithm_name",
        "algorithm_type",
        "execution_id",
        "acquired_at",
    )
    return {"locked": holder is not None} | {name: getattr(holder, name, None) for name in names}


def _node(graph: Graph, table: NodeTable) -> dict[str, object]:
    return {
        "label": table.label,
        "primary_key": table.key.name,
        "primary_key_type": table.key.type,
        "properties": _types(table.columns) | graph.written.get(table.label, {}),
        "node_count": graph.counts[table.label],
    }


def _edge(graph: Graph, table: EdgeTable) -> dict[str, object]:
    return {
        "type": table.type,
        "from_node": table.from_node,
        "to_node": table.to_node,
        "properties": _types(table.properties),
        "edge_count": graph.counts[f"{table.type}:{table.from_node}:{table.to_node}"],
    }


def _types(columns: tuple[Property, ...]) -> dict[str, str]:
    return {column.name: column.type for column in columns}


def _status(served: Served) -> dict[str, object]:
    assignment, graph = served.assignment, served.loaded
    return {
        "status": served.state,
        "ready": served.state == "running",
        "instance_id": served.settings.id,
        "snapshot_id": assignment.snapshot_id if assignment else None,
        "mapping_id": assignment.mapping_id if assignment else None,
        "owner_id": assignment.owner_username if assignment else None,
        "backend": served.settings.backend,
        "isolation": str(served.isolation),
        "isolation_missing": list(served.isolation.missing),
        "engine": _engine(served.engine),
        "started_at": served.started_at,
        "uptime_seconds": round(served.uptime, 3),
        "node_count": graph.node_count if graph else None,
        "edge_count": graph.edge_count if graph else None,
        "node_tables": [table.label for table in graph.schema.nodes] if graph else [],
        "edge_tables": list(graph.schema.edge_types) if graph else [],
        "memory_usage_bytes": served.memory_bytes,
        "disk_usage_bytes": served.disk_bytes,
        "lock": holding(served.lock),
    }


def _engine(engine: Engine) -> dict[str, object]:
    """The processes that hold the graph, and how often one had to be replaced, by reason."""
    supervisor = engine.supervisor
    return {
        "pids": supervisor.pids,
        "restarts": dict(supervisor.restarts),
        "query_memory_bytes": supervisor.query_bytes,
    }


def _metrics(served: Served) -> str:
    graph = served.loaded
    figures = {
        "penstock_instance_ready": int(served.state == "running"),
        "penstock_instance_active_queries": served.engine.active,
        "penstock_instance_queries_total": served.tally.total,
        "penstock_instance_query_seconds_total": round(served.tally.total_seconds, 6),
        "penstock_instance_engine_restarts_total": served.engine.supervisor.restarts.total(),
        "penstock_instance_memory_bytes": served.memory_bytes,
        "penstock_instance_nodes": graph.node_count if graph else 0,
        "penstock_instance_edges": graph.edge_count if graph else 0,
        "penstock_instance_locked": int(served.lock.holding is not None),
    }
    return "".join(
        f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}\n{name} {value}\n"
        for name, value in figures.items()
    )


def _json(body: dict[str, object], *, status: int = 200) -> Response:
    return Response(dump(body), status_code=status, media_type="application/json")
