"""The fields of each response that existing clients rely on; fields may be added, none removed or
renamed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.api.running_api import running_api

if TYPE_CHECKING:
    from pathlib import Path

    from tests.api.control_plane import Edge

MAPPING = """
    id owner_username name description current_version created_at updated_at ttl
    inactivity_timeout snapshot_count node_count edge_type_count data_source_id
"""
IN_DETAIL = """
    node_definitions edge_definitions change_description version_created_at version_created_by
    version
"""
SNAPSHOT = """
    id mapping_id mapping_version owner_username name description status gcs_path size_bytes
    node_counts edge_counts progress error_message failed_step created_at updated_at ready_at
    expires_at ttl inactivity_timeout last_used_at
"""
SNAPSHOT_PROGRESS = """
    phase jobs_total jobs_pending jobs_claimed jobs_submitted jobs_completed jobs_failed
    progress_percent jobs
"""
INSTANCE = """
    id snapshot_id snapshot_name mapping_id mapping_version owner_username wrapper_type name
    description status instance_url explorer_url pod_name url_slug progress error_code
    error_message failed_phase stack_trace created_at updated_at started_at last_activity_at
    expires_at ttl inactivity_timeout memory_usage_bytes disk_usage_bytes cpu_cores memory_gb
    node_count edge_count
"""
USER = """
    username email display_name role is_active created_at updated_at last_login_at
    role_changed_at role_changed_by
"""
TABLE = "catalog_name schema_name table_name table_type column_count cached_at"
COLUMN = """
    catalog_name schema_name table_name column_name data_type is_nullable ordinal_position
    column_default cached_at
"""
EXPORT = (
    "id snapshot_id entity_type entity_name status claimed_at claimed_by attempts error_message"
)
CLAIMED = """
    id snapshot_id job_type entity_name status sql column_names starburst_catalog starburst_role
    gcs_path claimed_by claimed_at attempt_id lease_seconds source
"""
TABLES = "/api/schema/catalogs/{catalog}/schemas/{schema}/tables"

FIELDS = {
    ("GET /api/mappings", "data"): MAPPING,
    ("GET /api/mappings", "meta"): "total offset limit request_id",
    ("POST /api/mappings", "data"): MAPPING + IN_DETAIL,
    ("GET /api/mappings/{mapping_id}", "data"): MAPPING + IN_DETAIL,
    ("PUT /api/mappings/{mapping_id}", "data"): MAPPING + IN_DETAIL,
    ("POST /api/mappings/{mapping_id}/copy", "data"): MAPPING + IN_DETAIL,
    ("GET /api/mappings/{mapping_id}", "data node_definitions"): "label sql primary_key properties",
    (
        "GET /api/mappings/{mapping_id}",
        "data edge_definitions",
    ): "type from_node to_node sql from_key to_key properties",
    (
        "GET /api/mappings/{mapping_id}/versions/{version}/diff/{other}",
        "data",
    ): "mapping_id from_version to_version summary changes",
    (
        "GET /api/mappings/{mapping_id}/versions/{version}/diff/{other}",
        "data summary",
    ): "nodes_added nodes_removed nodes_modified edges_added edges_removed edges_modified",
    (
        "GET /api/mappings/{mapping_id}/versions/{version}/diff/{other}",
        "data changes nodes",
    ): "label change_type fields_changed from to",
    (
        "GET /api/mappings/{mapping_id}/tree",
        "data",
    ): "id name owner_username current_version versions totals",
    (
        "GET /api/mappings/{mapping_id}/tree",
        "data versions",
    ): "version change_description created_at created_by snapshot_count snapshots",
    (
        "GET /api/mappings/{mapping_id}/tree",
        "data versions snapshots",
    ): "id name status created_at instance_count instances",
    (
        "GET /api/mappings/{mapping_id}/tree",
        "data totals",
    ): "version_count snapshot_count instance_count",
    ("GET /api/snapshots", "data"): SNAPSHOT,
    ("GET /api/snapshots/{snapshot_id}/progress", "data"): SNAPSHOT_PROGRESS,
    (
        "GET /api/snapshots/{snapshot_id}/progress",
        "data jobs",
    ): "id name type status row_count rows_so_far size_bytes error_message",
    ("GET /api/instances", "data"): INSTANCE,
    ("POST /api/instances/from-mapping", "data"): INSTANCE,
    (
        "GET /api/instances/{instance_id}/progress",
        "data",
    ): "phase current_step progress_percent error_message steps",
    ("GET /api/instances/{instance_id}/progress", "data steps"): "name type status row_count",
    ("GET /api/favorites", "data"): "resource_type resource_id resource_name created_at",
    ("GET /api/schema/catalogs", "data"): "catalog_name schema_count cached_at",
    (
        "GET /api/schema/catalogs/{catalog}/schemas",
        "data",
    ): "catalog_name schema_name table_count cached_at",
    (f"GET {TABLES}", "data"): TABLE,
    (f"GET {TABLES}/{{table}}/columns", "data"): COLUMN,
    ("GET /api/schema/search/tables", "data"): TABLE,
    ("GET /api/schema/search/columns", "data"): COLUMN,
    ("POST /api/schema/admin/refresh", "data"): "status",
    (
        "GET /api/schema/stats",
        "data",
    ): "total_catalogs total_schemas total_tables total_columns index_size_bytes last_refresh",
    ("GET /api/users/{username}", ""): USER,
    ("GET /api/users", "data"): USER,
    ("GET /api/config/lifecycle", "data"): "mapping snapshot instance",
    ("GET /api/config/lifecycle", "data mapping"): "default_ttl default_inactivity max_ttl",
    ("PUT /api/config/lifecycle", "data"): "updated",
    ("GET /api/config/concurrency", "data"): "per_analyst cluster_total updated_at",
    ("GET /api/config/maintenance", "data"): "enabled message updated_at updated_by",
    ("GET /api/config/export", "data"): "max_duration_seconds",
    ("GET /api/cluster/health", "data"): "status checked_at components",
    ("GET /api/cluster/instances", "data"): "total by_status by_owner limits",
    ("GET /api/cluster/instances", "data by_owner"): "owner_username count",
    (
        "GET /api/cluster/instances",
        "data limits",
    ): "per_analyst cluster_total cluster_used cluster_available",
    ("GET /api/exports", "data jobs"): EXPORT,
    ("GET /api/export-jobs", "data jobs"): EXPORT,
    ("GET /api/ops/export-jobs", "data jobs"): EXPORT,
    ("POST /api/ops/jobs/trigger", "data"): "job_name triggered_at triggered_by reason status",
    ("GET /api/ops/jobs/status", "data jobs"): "name next_run last_run last_status",
    ("GET /api/ops/state", "data"): "instances snapshots export_jobs",
    ("GET /api/ops/state", "data instances"): "total by_status without_pod_name",
    ("GET /api/ops/state", "data snapshots"): "total by_status",
    (
        "DELETE /api/admin/resources/bulk",
        "data",
    ): "dry_run matched_count matched_ids deleted_count deleted_ids failed_ids errors",
    ("POST /api/internal/export-jobs/claim", "data"): "claimed jobs",
    ("POST /api/internal/export-jobs/claim", "data jobs"): CLAIMED,
    (
        "GET /api/internal/instances/{instance_id}/mapping",
        "data",
    ): "snapshot_id mapping_id mapping_version gcs_path node_definitions edge_definitions",
}


async def test_every_answer_has_the_fields_that_its_clients_know(
    database: str, edge: Edge, tmp_path: Path
) -> None:
    async with running_api(database, edge, tmp_path / "home") as api:
        paths = (await api.ann.get("/api/openapi.json")).json()["paths"]
    for (operation, place), fields in FIELDS.items():
        missing = set(fields.split()) - set(_found(paths, operation, place))
        assert not missing, (operation, place, missing)


def _found(paths: dict[str, Any], operation: str, place: str) -> dict[str, Any]:
    """What the description shows at a place of an operation's answer; of a list, its first."""
    method, path = operation.split(" ")
    responses = paths[path][method.lower()]["responses"]
    [answer] = [response for status, response in responses.items() if status.startswith("2")]
    example = answer["content"]["application/json"]["example"]
    for step in place.split():
        example = example[step][0] if isinstance(example[step], list) else example[step]
    shown: dict[str, Any] = example
    return shown
