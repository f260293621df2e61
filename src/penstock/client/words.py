"""The words that a field may be. Written by `python -m tools.shapes`."""

from typing import Literal

ChangeType = Literal["added", "removed", "modified"]
ClusterStatus = Literal["healthy", "degraded", "unhealthy"]
ComponentStatus = Literal["healthy", "unhealthy"]
DecisionKind = Literal["match", "unmatch"]
EndedStatus = Literal["terminated", "stopping"]
Engine = Literal["ladybug", "ryugraph", "falkordb"]
EntityType = Literal["node", "edge"]
EvidenceForm = Literal["json", "csv", "parquet", "arrow", "xlsx"]
EvidenceFormulas = Literal["neutralize", "keep"]
EvidenceTable = Literal[
    "matched",
    "unmatched_left",
    "unmatched_right",
    "duplicates",
    "ambiguous",
    "open_items",
    "cleared_items",
]
ExportStatus = Literal["pending", "claimed", "submitted", "completed", "failed"]
HealthLevel = Literal["healthy", "warning", "critical", "unreadable"]
InstancePhase = Literal[
    "pod_scheduled", "downloading", "loading_schema", "loading_data", "ready", "failed"
]
InstanceStatus = Literal[
    "waiting_for_snapshot", "starting", "running", "stopping", "failed", "suspended", "resuming"
]
JobStatus = Literal["queued", "running", "parked", "succeeded", "failed", "cancelled"]
JobStatusFilter = Literal[
    "queued", "running", "parked", "succeeded", "failed", "cancelled", "pending", "completed"
]
KeyType = Literal["STRING", "INT64", "DATE", "UUID"]
MaintenanceStatus = Literal["pending", "running", "completed", "failed", "cancelled"]
PropertyType = Literal[
    "BLOB",
    "BOOL",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "INT16",
    "INT32",
    "INT64",
    "INT8",
    "LIST",
    "MAP",
    "STRING",
    "STRUCT",
    "TIMESTAMP",
    "UUID",
]
ResourceType = Literal["mapping", "snapshot", "instance"]
Role = Literal["analyst", "admin", "ops"]
RunStatus = Literal["staging", "ready", "executing", "completed", "failed", "cancelled"]
Severity = Literal["error", "warning"]
ShareRole = Literal["use", "edit"]
SideName = Literal["left", "right"]
SnapshotPhase = Literal["pending", "exporting", "publishing", "ready", "failed", "cancelled"]
SnapshotStatus = Literal["pending", "creating", "ready", "failed", "cancelled"]
SortOrder = Literal["asc", "desc"]
SourceType = Literal["bigquery", "duckdb", "elasticsearch", "files", "mysql", "postgres", "trino"]
StepStatus = Literal["pending", "in_progress", "completed", "failed"]
Tier = Literal["metadata", "manifests", "storage"]
