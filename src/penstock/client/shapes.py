"""What the API's answers and requests look like. Written by `python -m tools.shapes`."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from penstock.client.words import (
    ChangeType,
    ClusterStatus,
    ComponentStatus,
    DecisionKind,
    EndedStatus,
    Engine,
    EntityType,
    EvidenceForm,
    EvidenceFormulas,
    ExportStatus,
    HealthLevel,
    InstancePhase,
    InstanceStatus,
    JobStatus,
    JobStatusFilter,
    KeyType,
    MaintenanceStatus,
    PropertyType,
    ResourceType,
    Role,
    RunStatus,
    Severity,
    ShareRole,
    SideName,
    SnapshotPhase,
    SnapshotStatus,
    SortOrder,
    SourceType,
    StepStatus,
)


class ActionView(TypedDict):
    action: str
    status: str
    attempt_id: str
    ended_at: str
    result: dict[str, Any]


class Alive(TypedDict):
    status: str


class Attempt(TypedDict):
    attempt_id: str | None
    attempt_no: int
    worker: str | None
    claimed_at: str | None
    ended_at: str | None
    how: str
    detail: Any


class AuditEntry(TypedDict):
    at: str
    actor: str
    action: str
    subject: str
    detail: Any


class AuditFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["at", "created_at"]]
    subject: NotRequired[str | None]


class Bootstrapped(TypedDict):
    username: str
    email: str | None
    display_name: str | None
    role: Role
    is_active: bool
    created_at: str
    updated_at: str
    last_login_at: str | None
    role_changed_at: str | None
    role_changed_by: str | None
    api_key: str


class BrowsedTable(TypedDict):
    catalog_name: str
    schema_name: str
    table_name: str
    table_type: str
    column_count: int
    cached_at: str


class BulkBody(TypedDict):
    resource_type: ResourceType
    filters: BulkFilters
    reason: str
    expected_count: NotRequired[int | None]
    dry_run: NotRequired[bool]


class BulkDeleted(TypedDict):
    dry_run: bool
    matched_count: int
    matched_ids: list[int]
    deleted_count: int
    deleted_ids: list[int]
    failed_ids: list[int]
    errors: dict[str, str]


class BulkFilters(TypedDict):
    name_prefix: NotRequired[str | None]
    created_by: NotRequired[str | None]
    older_than_hours: NotRequired[float | None]
    status: NotRequired[str | None]


class CacheOfCatalog(TypedDict):
    catalog: str
    tables: int
    oldest: str
    newest: str
    failed: int


class CacheStatus(TypedDict):
    catalogs: list[CacheOfCatalog]


class CancelReason(TypedDict):
    reason: NotRequired[str]


class Catalog(TypedDict):
    catalog_name: str
    schema_count: int
    cached_at: str


class ChangedDataSource(TypedDict):
    name: NotRequired[str | None]
    config: NotRequired[dict[str, Any] | None]
    credentials: NotRequired[dict[str, Any] | None]


class ChangedInstance(TypedDict):
    name: NotRequired[str | None]
    description: NotRequired[str | None]


class ChangedMapping(TypedDict):
    change_description: str
    name: NotRequired[str | None]
    description: NotRequired[str | None]
    node_definitions: NotRequired[list[NodeBody] | None]
    edge_definitions: NotRequired[list[EdgeBody] | None]
    data_source_id: NotRequired[int | None]
    expected_version: NotRequired[int | None]


class ChangedRole(TypedDict):
    role: Role


class ChangedSnapshot(TypedDict):
    name: NotRequired[str | None]
    description: NotRequired[str | None]


class ChangedUser(TypedDict):
    email: NotRequired[str | None]
    display_name: NotRequired[str | None]
    is_active: NotRequired[bool | None]


class ClusterHealth(TypedDict):
    status: ClusterStatus
    checked_at: str
    components: dict[str, ComponentHealth]


class ClusterInstances(TypedDict):
    total: int
    by_status: dict[str, int]
    by_owner: list[OwnerCount]
    limits: Limits


class ClusterMetrics(TypedDict):
    checked_at: str
    mappings: int
    snapshots: dict[str, int]
    snapshot_bytes: int
    instances: dict[str, int]
    instance_memory_bytes: int
    instance_disk_bytes: int
    export_jobs: dict[str, int]
    export_queue_depth: int
    workers: Workers
    database_bytes: int
    database_connections: dict[str, int]


class ColumnListed(TypedDict):
    catalog_name: str
    schema_name: str
    table_name: str
    column_name: str
    data_type: str
    is_nullable: bool
    ordinal_position: int
    column_default: str | None
    cached_at: str


class ComponentHealth(TypedDict):
    status: ComponentStatus
    latency_ms: float
    error: str | None


class Concurrency(TypedDict):
    per_analyst: int
    cluster_total: int
    updated_at: str | None


class ConcurrencyBody(TypedDict):
    per_analyst: int
    cluster_total: int


class CopyBody(TypedDict):
    name: str


class CpuBody(TypedDict):
    cpu_cores: int


class DataSource(TypedDict):
    id: int
    name: str
    type: str
    owner_username: str
    is_default: bool
    config: dict[str, Any] | None
    has_credentials: bool
    created_at: str
    updated_at: str
    tested_at: str | None
    test_ok: bool | None
    test_message: str | None


class DataSourcesBrowseFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["name"]]
    prefix: NotRequired[str]


class DataSourcesFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["created_at", "id"]]
    type: NotRequired[SourceType | None]


class Decision(TypedDict):
    decision_id: int
    kind: DecisionKind
    left_key: list[str]
    right_key: list[str]
    comment: str
    created_by: str
    created_at: str


class Deleted(TypedDict):
    id: int
    deleted: NotRequired[Literal[True]]


class Diff(TypedDict):
    mapping_id: int
    from_version: int
    to_version: int
    summary: DiffSummary
    changes: DiffChanges


class DiffChanges(TypedDict):
    nodes: list[NodeChanged]
    edges: list[EdgeChanged]


class DiffSummary(TypedDict):
    nodes_added: int
    nodes_removed: int
    nodes_modified: int
    edges_added: int
    edges_removed: int
    edges_modified: int


class Drain(TypedDict):
    draining: bool
    reason: str
    changed_at: str
    changed_by: str


class DrainBody(TypedDict):
    draining: bool
    reason: NotRequired[str]


class EdgeBody(TypedDict):
    type: str
    from_node: str
    to_node: str
    sql: str
    from_key: str
    to_key: str
    properties: NotRequired[list[PropertyBody]]


EdgeChanged = TypedDict(
    "EdgeChanged",
    {
        "change_type": ChangeType,
        "fields_changed": list[str],
        "from": dict[str, Any] | None,
        "to": dict[str, Any] | None,
        "type": str,
        "from_node": str,
        "to_node": str,
    },
)


class EndBody(TypedDict):
    force: NotRequired[bool]
    reason: NotRequired[str]


class Ended(TypedDict):
    id: int
    status: EndedStatus


class ErrorBody(TypedDict):
    error: ErrorDetail
    meta: ErrorMeta


class ErrorDetail(TypedDict):
    code: str
    message: str
    details: dict[str, Any]


class ErrorMeta(TypedDict):
    request_id: str


class EventShown(TypedDict):
    id: int
    instance_id: int
    event_type: str
    actor: str | None
    details: dict[str, Any]
    created_at: str


class ExportBody(TypedDict):
    max_duration_seconds: int


class ExportJob(TypedDict):
    id: int
    snapshot_id: int
    entity_type: EntityType
    entity_name: str
    status: ExportStatus
    claimed_at: str | None
    claimed_by: str | None
    attempts: int
    error_message: str | None


class ExportJobsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["created_at", "id"]]
    status: NotRequired[ExportStatus | None]
    snapshot_id: NotRequired[int | None]


class ExportPage(TypedDict):
    data: Exports
    meta: Meta


class ExportSettings(TypedDict):
    max_duration_seconds: int


class ExportState(TypedDict):
    by_status: dict[str, int]


class Exports(TypedDict):
    jobs: list[ExportJob]


class ExportsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["created_at", "id"]]
    status: NotRequired[ExportStatus | None]
    snapshot_id: NotRequired[int | None]


class Facts(TypedDict):
    facts: dict[str, Any]


class Fault(TypedDict):
    path: str
    message: str
    suggestion: str
    severity: Severity


class Favorite(TypedDict):
    resource_type: ResourceType
    resource_id: int
    resource_name: str
    created_at: str


class FavoriteBody(TypedDict):
    resource_type: ResourceType
    resource_id: int


class FavoriteDropped(TypedDict):
    deleted: bool


class FavoritesFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["created_at"]]
    resource_type: NotRequired[ResourceType | None]


class FirstUser(TypedDict):
    username: str
    email: NotRequired[str | None]
    display_name: NotRequired[str | None]


class HistoryEntry(TypedDict):
    job_id: int
    created_at: str
    created_by: str | None
    policy: str | None
    actions: list[Any]
    dry_run: bool
    status: str
    maintenance_status: MaintenanceStatus | None
    finished_at: str | None
    error: Any


class InferBody(TypedDict):
    data_source_id: NotRequired[int | None]
    catalog: NotRequired[str | None]
    schema: NotRequired[str | None]
    tables: NotRequired[list[str] | None]


class Instance(TypedDict):
    id: int
    snapshot_id: int | None
    snapshot_name: str | None
    mapping_id: int | None
    mapping_version: int | None
    owner_username: str
    wrapper_type: str
    name: str
    description: str | None
    status: InstanceStatus
    instance_url: str
    explorer_url: str
    pod_name: str | None
    url_slug: str
    progress: InstanceProgress
    error_code: str | None
    error_message: str | None
    failed_phase: str | None
    stack_trace: str | None
    created_at: str
    updated_at: str
    started_at: str | None
    last_activity_at: str | None
    expires_at: str | None
    ttl: str | None
    inactivity_timeout: str | None
    memory_usage_bytes: int | None
    disk_usage_bytes: int | None
    cpu_cores: int
    memory_gb: int
    node_count: int | None
    edge_count: int | None


class InstanceProgress(TypedDict):
    phase: InstancePhase
    current_step: str | None
    progress_percent: int
    error_message: str | None
    steps: list[InstanceStep]


class InstanceState(TypedDict):
    total: int
    by_status: dict[str, int]
    without_pod_name: int


class InstanceStep(TypedDict):
    name: str
    type: NotRequired[str | None]
    status: StepStatus
    row_count: NotRequired[int | None]


class InstancesEventsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["created_at"]]


class InstancesFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[
        Literal["created_at", "updated_at", "name", "owner_username", "status", "expires_at", "id"]
    ]
    snapshot_id: NotRequired[int | None]
    mapping_id: NotRequired[int | None]
    owner: NotRequired[str | None]
    status: NotRequired[InstanceStatus | None]
    search: NotRequired[str | None]
    created_after: NotRequired[str | None]
    created_before: NotRequired[str | None]


class JobBody(TypedDict):
    kind: str
    payload: NotRequired[Any]
    queue: NotRequired[str | None]
    priority: NotRequired[int | None]
    run_in: NotRequired[float | None]
    deadline_in: NotRequired[float | None]
    timeout: NotRequired[float | None]
    max_attempts: NotRequired[int | None]
    group_id: NotRequired[int | None]
    lock_key: NotRequired[str | None]
    unique_key: NotRequired[str | None]


class JobCancelled(TypedDict):
    id: int
    status: NotRequired[Literal["cancelled"]]
    newly: bool


class JobDetail(TypedDict):
    id: int
    kind: str
    queue: str
    priority: int
    status: JobStatus
    attempt_no: int
    max_attempts: int
    created_at: str
    created_by: str | None
    group_id: int | None
    lock_key: str | None
    unique_key: str | None
    retry_of: int | None
    worker: str | None
    claimed_at: str | None
    lease_until: str | None
    wake_at: str | None
    deadline: str | None
    finished_at: str | None
    polls: int
    progress: Any
    error: Any
    payload: Any
    result: Any
    trace: str | None
    lock: Lock | None
    attempts: list[Attempt]
    maintenance_status: MaintenanceStatus | None


class JobEnqueued(TypedDict):
    id: int
    created: bool


class JobProgress(TypedDict):
    id: int
    name: str
    type: EntityType
    status: ExportStatus
    row_count: int | None
    rows_so_far: int | None
    size_bytes: int | None
    error_message: str | None


class JobSummary(TypedDict):
    id: int
    kind: str
    queue: str
    priority: int
    status: JobStatus
    attempt_no: int
    max_attempts: int
    created_at: str
    created_by: str | None
    group_id: int | None
    lock_key: str | None
    unique_key: str | None
    retry_of: int | None
    worker: str | None
    claimed_at: str | None
    lease_until: str | None
    wake_at: str | None
    deadline: str | None
    finished_at: str | None
    polls: int
    progress: Any
    error: Any


class JobsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["created_at", "id"]]
    status: NotRequired[JobStatusFilter | None]
    kind: NotRequired[str | None]
    queue: NotRequired[str | None]
    group_id: NotRequired[int | None]
    created_after: NotRequired[str | None]
    created_before: NotRequired[str | None]


class KeyBody(TypedDict):
    name: NotRequired[str]
    expires_in_days: NotRequired[int]


class KeyList(TypedDict):
    data: list[ShownKey]


class Lifecycle(TypedDict):
    mapping: Rule
    snapshot: Rule
    instance: Rule


class LifecycleBody(TypedDict):
    ttl: NotRequired[str | None]
    inactivity_timeout: NotRequired[str | None]


class LifecycleSettingsBody(TypedDict):
    mapping: NotRequired[RuleBody | None]
    snapshot: NotRequired[RuleBody | None]
    instance: NotRequired[RuleBody | None]


class Limits(TypedDict):
    per_analyst: int
    cluster_total: int
    cluster_used: int
    cluster_available: int


class Lock(TypedDict):
    key: str
    held: bool


class LoopStatus(TypedDict):
    name: str
    next_run: str | None
    last_run: str | None
    last_status: str | None


class LoopTriggered(TypedDict):
    job_name: str
    triggered_at: str
    triggered_by: str
    reason: str
    status: NotRequired[Literal["queued"]]


class LoopsStatus(TypedDict):
    jobs: list[LoopStatus]


class Made(TypedDict):
    decision_id: int


class Maintenance(TypedDict):
    enabled: bool
    message: str
    updated_at: str | None
    updated_by: str | None


class MaintenanceBody(TypedDict):
    actions: list[str | dict[str, Any]]
    catalog: NotRequired[str | None]
    engine: NotRequired[str]
    dry_run: NotRequired[bool]
    reason: NotRequired[str]


class MaintenanceModeBody(TypedDict):
    enabled: bool
    message: NotRequired[str]


class MaintenancePass(TypedDict):
    run_id: int
    at: str
    assessed: int
    skipped: Any
    healthy: int
    submitted: int
    completed: int
    failed: int


class MaintenanceRunsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]


class Mapping(TypedDict):
    id: int
    owner_username: str
    name: str
    description: str | None
    current_version: int
    created_at: str
    updated_at: str
    ttl: str | None
    inactivity_timeout: str | None
    snapshot_count: int
    node_count: int
    edge_type_count: int
    data_source_id: int | None


class MappingDetail(TypedDict):
    id: int
    owner_username: str
    name: str
    description: str | None
    current_version: int
    created_at: str
    updated_at: str
    ttl: str | None
    inactivity_timeout: str | None
    snapshot_count: int
    node_count: int
    edge_type_count: int
    data_source_id: int | None
    version: int
    node_definitions: list[NodeBody]
    edge_definitions: list[EdgeBody]
    change_description: str | None
    version_created_at: str
    version_created_by: str
    warnings: list[Problem]


class MappingValidation(TypedDict):
    valid: bool
    problems: list[Problem]
    warnings: list[Problem]


class MappingsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[
        Literal["created_at", "updated_at", "name", "owner_username", "current_version", "id"]
    ]
    owner: NotRequired[str | None]
    search: NotRequired[str | None]
    created_after: NotRequired[str | None]
    created_before: NotRequired[str | None]


class MappingsInstancesFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[
        Literal["created_at", "updated_at", "name", "owner_username", "status", "expires_at", "id"]
    ]
    snapshot_id: NotRequired[int | None]
    mapping_id: NotRequired[int | None]
    owner: NotRequired[str | None]
    status: NotRequired[InstanceStatus | None]
    search: NotRequired[str | None]
    created_after: NotRequired[str | None]
    created_before: NotRequired[str | None]


class MappingsSnapshotsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[
        Literal[
            "created_at",
            "updated_at",
            "name",
            "status",
            "owner_username",
            "size_bytes",
            "ready_at",
            "id",
        ]
    ]
    owner: NotRequired[str | None]
    status: NotRequired[SnapshotStatus | None]
    search: NotRequired[str | None]
    created_after: NotRequired[str | None]
    created_before: NotRequired[str | None]


class MappingsVersionsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["created_at", "version"]]


class MemoryBody(TypedDict):
    memory_gb: int


class Meta(TypedDict):
    total: int
    total_is_estimate: NotRequired[bool]
    offset: int
    limit: int
    request_id: str


class Mine(TypedDict):
    id: int
    name: str
    status: InstanceStatus


class NewDataSource(TypedDict):
    name: str
    type: SourceType
    config: NotRequired[dict[str, Any]]
    credentials: NotRequired[dict[str, Any]]


class NewDecision(TypedDict):
    kind: DecisionKind
    left_key: list[str]
    right_key: list[str]
    comment: NotRequired[str]


class NewInstance(TypedDict):
    name: str
    mapping_id: NotRequired[int | None]
    mapping_version: NotRequired[int | None]
    snapshot_id: NotRequired[int | None]
    wrapper_type: NotRequired[Engine]
    description: NotRequired[str | None]
    ttl: NotRequired[str | None]
    inactivity_timeout: NotRequired[str | None]
    cpu_cores: NotRequired[int | None]
    max_snapshot_age: NotRequired[str | None]


class NewKey(TypedDict):
    id: int
    username: str
    name: str
    prefix: str
    created_at: str
    created_by: str
    expires_at: str
    revoked_at: str | None
    last_used_at: str | None
    key: str


class NewMapping(TypedDict):
    name: str
    description: NotRequired[str | None]
    node_definitions: list[NodeBody]
    edge_definitions: NotRequired[list[EdgeBody] | None]
    data_source_id: NotRequired[int | None]
    ttl: NotRequired[str | None]
    inactivity_timeout: NotRequired[str | None]


class NewRun(TypedDict):
    recipe_id: NotRequired[str | None]
    version: NotRequired[int | None]
    recipe: NotRequired[dict[str, Any] | None]
    parameters: NotRequired[dict[str, Any]]
    sources: NotRequired[dict[str, dict[str, Any]]]
    staging: NotRequired[dict[str, Any] | None]
    callback_url: NotRequired[str | None]


class NewSnapshot(TypedDict):
    mapping_id: int
    name: str
    description: NotRequired[str | None]
    mapping_version: NotRequired[int | None]
    ttl: NotRequired[str | None]
    inactivity_timeout: NotRequired[str | None]


class NewSource(TypedDict):
    alias: str
    type: str
    config: NotRequired[dict[str, Any]]
    credentials: NotRequired[dict[str, str]]


class NewUser(TypedDict):
    username: str
    email: NotRequired[str | None]
    display_name: NotRequired[str | None]
    role: NotRequired[Role]


class NodeBody(TypedDict):
    label: str
    sql: str
    primary_key: PrimaryKeyBody
    properties: NotRequired[list[PropertyBody]]


NodeChanged = TypedDict(
    "NodeChanged",
    {
        "change_type": ChangeType,
        "fields_changed": list[str],
        "from": dict[str, Any] | None,
        "to": dict[str, Any] | None,
        "label": str,
    },
)


class Note(TypedDict):
    side: SideName
    key: list[str]
    label: str | None
    comment: str | None
    assignee: str | None
    updated_by: str
    updated_at: str


class NoteBody(TypedDict):
    side: SideName
    key: list[str]
    label: NotRequired[str | None]
    comment: NotRequired[str | None]
    assignee: NotRequired[str | None]


class Noted(TypedDict):
    side: SideName
    key: list[str]


class OpsExportJobsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["created_at", "id"]]
    status: NotRequired[ExportStatus | None]
    snapshot_id: NotRequired[int | None]


class Outcomes(TypedDict):
    outcomes: list[dict[str, Any]]


class OwnerCount(TypedDict):
    owner_username: str
    count: int


class PlanBody(TypedDict):
    actions: list[str | dict[str, Any]]
    catalog: NotRequired[str | None]


class PoliciesBody(TypedDict):
    policies: list[PolicyBody]


class PoliciesView(TypedDict):
    policies: list[dict[str, Any]]


class PolicyBody(TypedDict):
    name: str
    pattern: str
    enabled: NotRequired[bool]
    health_below: NotRequired[int | None]
    every_seconds: NotRequired[int | None]
    commits: NotRequired[int | None]
    window: NotRequired[Window | None]
    zone: NotRequired[str]
    max_jobs: NotRequired[int]
    actions: NotRequired[list[str | dict[str, Any]] | None]


class PreviewBody(TypedDict):
    recipe_id: NotRequired[str | None]
    recipe: NotRequired[dict[str, Any] | None]
    parameters: NotRequired[dict[str, Any]]
    rows: NotRequired[int]


class Previewed(TypedDict):
    totals: dict[str, Any]
    rules: list[dict[str, Any]]
    warnings: list[Fault]
    matched: list[dict[str, Any]]
    unmatched_left: list[dict[str, Any]]
    unmatched_right: list[dict[str, Any]]
    duplicates: list[dict[str, Any]]
    ambiguous: list[dict[str, Any]]


class PrimaryKeyBody(TypedDict):
    name: str
    type: KeyType


class Problem(TypedDict):
    entity: str
    column: str
    problem: str
    suggestion: str


class PropertyBody(TypedDict):
    name: str
    type: PropertyType


class Proposed(TypedDict):
    data_source_id: int
    node_definitions: list[NodeBody]
    edge_definitions: list[EdgeBody]
    warnings: list[Problem]


class Queue(TypedDict):
    queue: str
    ready: int
    running: int
    parked: int
    scheduled: int
    oldest_wait: float | None
    estimated: bool


class QueuesFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["queue"]]


class Readiness(TypedDict):
    status: str
    draining: bool
    failing: dict[str, str]


class Recipe(TypedDict):
    recipe_id: str
    owner: str
    version: int
    latest: int
    digest: str
    document: dict[str, Any]
    created_by: str
    created_at: str


class RecipeBody(TypedDict):
    recipe: dict[str, Any]


class RecipeDropped(TypedDict):
    recipe_id: str


class RecipeScheduleBody(TypedDict):
    cron: str
    zone: NotRequired[str]
    enabled: NotRequired[bool]
    parameters: NotRequired[dict[str, Any]]


class RecipeStep(TypedDict):
    step: str
    sql: str


class RecipeValidation(TypedDict):
    valid: bool
    faults: list[Fault]


class RecipeVersion(TypedDict):
    version: int
    digest: str
    created_by: str
    created_at: str


class RecipesFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["updated_at"]]


class RecipesItemsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["updated_at"]]
    assignee: NotRequired[str | None]


class Recommendation(TypedDict):
    actions: list[str]
    policy: str | None
    due: str | None
    skipped: str | None
    cadence_seconds: float | None
    score: int


class RecordSource(TypedDict):
    alias: str
    type: str
    owner: str
    staged: bool
    connected: bool | None


class RefreshTriggered(TypedDict):
    status: NotRequired[Literal["refresh triggered"]]


class Refreshed(TypedDict):
    seen: int
    failed: int
    forgotten: int
    unavailable: list[str]


class Revoked(TypedDict):
    revoked: int


class Rows(TypedDict):
    columns: list[dict[str, str]]
    rows: list[dict[str, Any]]


class Rule(TypedDict):
    default_ttl: str | None
    default_inactivity: str | None
    max_ttl: str | None


class RuleBody(TypedDict):
    default_ttl: NotRequired[str | None]
    default_inactivity: NotRequired[str | None]
    max_ttl: NotRequired[str | None]


class Run(TypedDict):
    run_id: int
    recipe_id: str | None
    recipe_version: int | None
    name: str
    status: RunStatus
    progress: RunProgress
    owner: str
    parameters: dict[str, Any]
    totals: dict[str, Any] | None
    rules: list[dict[str, Any]] | None
    timings: dict[str, float] | None
    evidence_sha256: str | None
    error: dict[str, Any] | None
    retry_of: int | None
    callback_secret: NotRequired[str | None]
    created_at: str
    ready_at: str | None
    finished_at: str | None


class RunCancelBody(TypedDict):
    reason: NotRequired[str]


class RunProgress(TypedDict):
    stage: str
    rows: int
    percent: float | None
    eta_seconds: float | None
    jobs: int
    jobs_over: int


class RunsEvidenceFilters(TypedDict):
    format: NotRequired[EvidenceForm]
    formulas: NotRequired[EvidenceFormulas]


class RunsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["created_at"]]
    recipe_id: NotRequired[str | None]


class Schedule(TypedDict):
    name: str
    cron: str
    zone: str
    enabled: bool
    next_at: str | None
    last_at: str | None
    last_job: int | None
    job: dict[str, Any]


class ScheduleBody(TypedDict):
    cron: str
    zone: NotRequired[str]
    enabled: NotRequired[bool]
    job: JobBody


class ScheduleDropped(TypedDict):
    name: str


class Scheduled(TypedDict):
    name: str
    next_at: str | None


class SchedulesFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["name"]]


class SchemaCatalogsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["name"]]


class SchemaCatalogsSchemasFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["name"]]


class SchemaCatalogsSchemasTablesColumnsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["name"]]


class SchemaCatalogsSchemasTablesFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["name"]]


class SchemaListed(TypedDict):
    catalog_name: str
    schema_name: str
    table_count: int
    cached_at: str


class SchemaSearchColumnsFilters(TypedDict):
    q: NotRequired[str]


class SchemaSearchTablesFilters(TypedDict):
    q: NotRequired[str]


class ScopedBody(TypedDict):
    table: NotRequired[str | None]
    query: NotRequired[str | None]
    filters: NotRequired[list[dict[str, Any]]]
    limit: NotRequired[int]


class SettingsUpdated(TypedDict):
    updated: bool


class Share(TypedDict):
    username: str
    role: ShareRole
    created_by: str
    created_at: str


class ShareBody(TypedDict):
    role: NotRequired[ShareRole]


class ShortProgress(TypedDict):
    phase: SnapshotPhase
    jobs_total: int
    jobs_completed: int
    progress_percent: int


class ShownKey(TypedDict):
    id: int
    username: str
    name: str
    prefix: str
    created_at: str
    created_by: str
    expires_at: str
    revoked_at: str | None
    last_used_at: str | None


class Snapshot(TypedDict):
    id: int
    mapping_id: int | None
    mapping_version: int | None
    owner_username: str
    name: str
    description: str | None
    status: SnapshotStatus
    gcs_path: str | None
    size_bytes: int | None
    node_counts: dict[str, int]
    edge_counts: dict[str, int]
    progress: ShortProgress
    error_message: str | None
    failed_step: str | None
    created_at: str
    updated_at: str
    ready_at: str | None
    expires_at: str | None
    ttl: str | None
    inactivity_timeout: str | None
    last_used_at: str | None


class SnapshotProgress(TypedDict):
    phase: SnapshotPhase
    jobs_total: int
    jobs_pending: int
    jobs_claimed: int
    jobs_submitted: int
    jobs_completed: int
    jobs_failed: int
    progress_percent: int
    jobs: list[JobProgress]


class SnapshotState(TypedDict):
    total: int
    by_status: dict[str, int]


class SnapshotsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[
        Literal[
            "created_at",
            "updated_at",
            "name",
            "status",
            "owner_username",
            "size_bytes",
            "ready_at",
            "id",
        ]
    ]
    owner: NotRequired[str | None]
    status: NotRequired[SnapshotStatus | None]
    search: NotRequired[str | None]
    created_after: NotRequired[str | None]
    created_before: NotRequired[str | None]
    mapping_id: NotRequired[int | None]


class SourceColumn(TypedDict):
    column_name: str
    data_type: str
    is_nullable: bool
    ordinal_position: int
    column_default: str | None


class SourceDropped(TypedDict):
    id: int


class SourceTable(TypedDict):
    catalog_name: str
    schema_name: str
    table_name: str
    table_type: str


class SourcesFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["created_at"]]


class SourcesPreviewFilters(TypedDict):
    table: NotRequired[str]


class State(TypedDict):
    instances: InstanceState
    snapshots: SnapshotState
    export_jobs: ExportState


class Stats(TypedDict):
    total_catalogs: int
    total_schemas: int
    total_tables: int
    total_columns: int
    index_size_bytes: int
    last_refresh: str | None


class SuggestBody(TypedDict):
    left: NotRequired[dict[str, Any] | None]
    right: NotRequired[dict[str, Any] | None]
    recipe_id: NotRequired[str | None]


class Suggested(TypedDict):
    rules: list[dict[str, Any]]
    why: list[str]
    pairs: int


class TableHealth(TypedDict):
    score: int
    level: str
    tier: str
    issues: list[dict[str, Any]]


class TableListed(TypedDict):
    catalog: str
    db: str
    table: str
    enabled: bool | None
    score: int | None
    facts: dict[str, Any]
    health: dict[str, Any]
    error: str | None
    seen_at: str


class TableSchema(TypedDict):
    catalog_name: str
    schema_name: str
    table_name: str
    table_type: str
    columns: list[SourceColumn]


class TablesFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    catalog: NotRequired[str | None]
    db: NotRequired[str | None]
    enabled: NotRequired[bool | None]
    health: NotRequired[HealthLevel | None]


class TablesHistoryFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    catalog: NotRequired[str | None]


class TestResult(TypedDict):
    id: int
    ok: bool
    message: str
    seconds: float
    tested_at: str


class Tree(TypedDict):
    id: int
    name: str
    owner_username: str
    current_version: int
    versions: list[TreeVersion]
    totals: TreeTotals


class TreeInstance(TypedDict):
    id: int
    name: str
    status: str


class TreeSnapshot(TypedDict):
    id: int
    name: str
    status: str
    created_at: str
    instance_count: int
    instances: list[TreeInstance]


class TreeTotals(TypedDict):
    version_count: int
    snapshot_count: int
    instance_count: int


class TreeVersion(TypedDict):
    version: int
    change_description: str | None
    created_at: str
    created_by: str
    snapshot_count: int
    snapshots: list[TreeSnapshot]


class TriggerBody(TypedDict):
    job_name: str
    reason: str


class Unshared(TypedDict):
    deleted: bool


class Upload(TypedDict):
    upload_id: str
    name: str
    rows: int
    size_bytes: int
    sha256: str
    columns: list[UploadColumn]
    created_at: str
    owner: str
    expires_at: str


class UploadColumn(TypedDict):
    name: str
    type: str


class UploadDropped(TypedDict):
    upload_id: str
    deleted: bool


class UploadUsage(TypedDict):
    files: int
    max_files: int
    bytes: int
    max_bytes: int
    max_file_bytes: int
    days: int


class UploadsFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["created_at"]]


class UserList(TypedDict):
    data: list[UserShown]


class UserShown(TypedDict):
    username: str
    email: str | None
    display_name: str | None
    role: Role
    is_active: bool
    created_at: str
    updated_at: str
    last_login_at: str | None
    role_changed_at: str | None
    role_changed_by: str | None


class UserStatus(TypedDict):
    username: str
    active_instances: int
    max_instances: int
    remaining_instances: int
    memory_gb: int
    max_memory_gb: int
    can_create: bool
    instances: list[Mine]


class UsersFilters(TypedDict):
    is_active: NotRequired[bool | None]


class ValidateBody(TypedDict):
    node_definitions: list[NodeBody]
    edge_definitions: NotRequired[list[EdgeBody] | None]
    data_source_id: NotRequired[int | None]


class VersionDetail(TypedDict):
    mapping_id: int
    version: int
    change_description: str | None
    created_at: str
    created_by: str
    node_definitions: list[NodeBody]
    edge_definitions: list[EdgeBody]


class VersionListed(TypedDict):
    mapping_id: int
    version: int
    change_description: str | None
    created_at: str
    created_by: str
    node_count: int
    edge_type_count: int
    snapshot_count: int


Window = TypedDict("Window", {"from": str, "to": str})


class Worker(TypedDict):
    name: str
    started_at: str
    seen_at: str
    running: int
    slots: int
    queues: list[str]
    version: str
    seconds_ago: float


class Workers(TypedDict):
    total: int
    slots: int
    running: int


class WorkersFilters(TypedDict):
    sort_order: NotRequired[SortOrder]
    sort_by: NotRequired[Literal["seen_at"]]
