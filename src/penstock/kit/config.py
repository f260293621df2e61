"""Settings: defaults, then a TOML file, then a secrets directory, then `PENSTOCK_*`; the last one
wins."""

from __future__ import annotations

import os
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from penstock.kit.errors import InvalidInput
from penstock.kit.outbound import OutboundPolicy, allow_list

Network: TypeAlias = IPv4Network | IPv6Network
LEAST_SECRET = 16


def default_home() -> Path:
    return Path(os.environ.get("PENSTOCK_HOME") or Path.home() / ".penstock")


class Settings(BaseSettings):
    """Every knob there is; `docs/reference/settings.md` is generated from it."""

    model_config = SettingsConfigDict(env_prefix="PENSTOCK_", extra="forbid", frozen=True)

    home: Path = Field(
        default_factory=default_home, description="Where the embedded mode keeps everything."
    )
    database_url: SecretStr | None = Field(
        None, description="A PostgreSQL 15+ to use instead of the embedded one."
    )
    database_direct_url: SecretStr | None = Field(
        None,
        description="The same database without the pooler: set it when PENSTOCK_DATABASE_URL is a"
        " PgBouncer in transaction mode. Notifications, turns and migrations go there.",
    )
    database_pool: Annotated[int, Field(ge=2, le=200)] = Field(
        12, description="Connections a control plane may open."
    )

    host: str = Field("127.0.0.1", description="Address the control plane listens on.")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(
        8080, description="Port the control plane listens on."
    )
    processes: Annotated[int, Field(ge=1, le=64)] = Field(
        1,
        description="Processes of a control plane, on one port; each may open `database_pool`"
        " connections.",
    )
    tls_cert: Path | None = Field(
        None,
        description="Certificate in PEM form, with its chain: the control plane then speaks HTTPS"
        " alone. Unset means: HTTP, for a proxy in front that has the certificate.",
    )
    tls_key: Path | None = Field(
        None, description="The certificate's key in PEM form, without a password."
    )
    header_timeout_seconds: Annotated[float, Field(ge=1, le=300)] = Field(
        10.0, description="How long the head of a request may take to come."
    )
    body_timeout_seconds: Annotated[float, Field(ge=1, le=3600)] = Field(
        30.0,
        description="How long the body of a request may pause, and how long it may come at less"
        " than 1,024 bytes a second.",
    )
    connections_per_address: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        256, description="Most connections that one address may have to one process."
    )
    connections_exempt: str = Field(
        "127.0.0.0/8, ::1",
        description="Addresses and networks whose connections are not counted, with commas between"
        " them: proxies, and hosts with many workers.",
    )
    url: str | None = Field(None, description="Where clients and workers find the control plane.")

    service_token: SecretStr | None = Field(
        None, description="What workers show; unset means no internal API."
    )
    operator_token: SecretStr | None = Field(
        None, description="What operators show; it carries the role ops."
    )

    operator_token_file: Path | None = Field(
        None,
        description="A file with the operator token, read again when it changes; it wins over"
        " `operator_token`. `penstock up` sets it to a file of its home.",
    )
    login_link_seconds: Annotated[int, Field(ge=10, le=3600)] = Field(
        300,
        description="How long a login link of `penstock up` and `penstock login` can be opened,"
        " once.",
    )
    session_seconds: Annotated[int, Field(ge=60, le=2_592_000)] = Field(
        43_200, description="How long a browser that opened a login link stays signed in."
    )
    local_only: bool | None = Field(
        None,
        description="Whether only programs of this machine may call: requests with a header of a"
        " proxy, or under the name of another host, are refused. Unset means: while the database"
        " is embedded, `host` is a loopback address and `trusted_headers` is off.",
    )

    trusted_headers: bool = Field(
        False,
        description="Whether X-Username and X-User-Role of a proxy are believed; needs"
        " `trusted_proxies`, `trusted_proxy_secret` or both, and then both must hold.",
    )
    trusted_proxies: str | None = Field(
        None, description="Addresses of the proxies that set these headers: 10.0.0.7,10.1.0.0/16."
    )
    trusted_proxy_secret: SecretStr | None = Field(
        None, description="What the proxy sends as X-Penstock-Proxy-Secret, at least 16 characters."
    )

    user_requests_per_second: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        200,
        description="Requests that one user may send, on average; twice as many at once. 0"
        " means no limit. Workers, graph servers and the operator token have none. Each process"
        " counts for itself.",
    )
    address_requests_per_second: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        1000,
        description="The same for one address, whoever is behind it; this machine's own addresses"
        " have no limit.",
    )
    failed_logins_per_minute: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        60,
        description="Wrong or missing credentials that one address may send; beyond it only"
        " credentials that were right in the last hour are tried. 0 means no limit.",
    )

    oidc_issuer: str | None = Field(
        None, description="The identity provider, as its tokens name it; unset means none."
    )
    oidc_audience: str = Field("penstock", description="Whom the provider's tokens must be for.")
    oidc_jwks_url: str | None = Field(
        None, description="Where its keys are; unset means: it is asked where."
    )
    oidc_username_claim: str = Field("email", description="The claim that names the user.")
    oidc_email_claim: str = Field("email", description="The claim with the e-mail address.")
    oidc_role_claim: str | None = Field(
        None,
        description="The claim with roles, such as realm_access.roles; unset means: newcomers are"
        " analysts.",
    )
    oidc_roles: str | None = Field(
        None,
        description="What the provider calls our roles: graph-users=analyst,graph-ops=ops; unset"
        " means: as we do.",
    )
    oidc_leeway_seconds: Annotated[int, Field(ge=0, le=300)] = Field(
        60, description="How far the provider's clock may be from ours."
    )
    oidc_allow_private: bool = Field(
        False, description="Whether the provider may be on a private network or on this machine."
    )
    token_review_workers: str | None = Field(
        None,
        description="Service accounts whose tokens make a worker, as namespace/name with commas"
        " between them; set, the Kubernetes API server is asked whose a service token is.",
    )
    token_review_wrappers: str | None = Field(
        None,
        description="Service accounts of graph servers; which instance theirs is, the pod's name"
        " says.",
    )
    token_review_audience: str = Field(
        "penstock", description="Whom service-account tokens must be for."
    )

    secret_key: SecretStr | None = Field(
        None,
        description="Seals the credentials of data sources: 32 bytes in base64, see `penstock"
        " rekey --new-key`.",
    )
    secret_keys_old: SecretStr | None = Field(
        None,
        description="Earlier keys, with commas between them; they open until `penstock rekey` has"
        " run.",
    )
    allow_private_sources: bool | None = Field(
        None,
        description="Whether data sources may lead to this machine's files and to private"
        " networks; unset means: only while `host` is a loopback address.",
    )
    outbound_allow: str = Field(
        "",
        description="Networks and host names that data sources, callbacks and spooled results may"
        " lead to although they are private, with commas between them: 10.1.0.0/16,"
        " minio.corp.example, .corp.example for all below it.",
    )
    outbound_answer_mb: Annotated[int, Field(ge=1, le=4096)] = Field(
        256,
        description="Largest body that is read from one answer of a data source over HTTP, in"
        " megabytes.",
    )

    source_memory_mb: Annotated[int, Field(ge=64, le=1_000_000)] = Field(
        1024,
        description="Most memory that a data source may ask for, in megabytes (memory_limit of its"
        " DuckDB).",
    )
    source_threads: Annotated[int, Field(ge=1, le=256)] = Field(
        4, description="Most threads that a data source may ask for (threads of its DuckDB)."
    )
    source_spill_mb: Annotated[int, Field(ge=1, le=100_000_000)] = Field(
        10_000,
        description="Most temporary disk that a data source may ask for, in megabytes (spill_limit"
        " of its DuckDB).",
    )
    source_buffer_mb: Annotated[int, Field(ge=1, le=10_000)] = Field(
        64,
        description="Largest piece that a data source may be read in, in megabytes"
        " (csv.block_bytes, page_bytes).",
    )
    source_parallel: Annotated[int, Field(ge=1, le=32)] = Field(
        8, description="Most requests at once that a data source may ask for (parallel of a Trino)."
    )
    source_wait_seconds: Annotated[int, Field(ge=60, le=86_400)] = Field(
        3600,
        description="Longest time that a data source may have us wait for it (its timeouts and"
        " silence_seconds).",
    )

    source_questions: Annotated[int, Field(ge=1, le=1000)] = Field(
        8,
        description="How many tests, previews, validations and suggestions of data sources one"
        " control-plane process runs at once: with source_memory_mb that bounds its memory. More"
        " wait, then get 429.",
    )
    source_questions_per_user: Annotated[int, Field(ge=1, le=1000)] = Field(
        4, description="How many of them may be one user's; more wait, then get 429."
    )

    storage_url: str | None = Field(
        None,
        description="Where results are kept: file:///folder, s3://bucket/prefix,"
        " gs://bucket/prefix.",
    )
    storage_engine_url: str | None = Field(
        None,
        description="What a query engine calls the same place, where it has another name for it.",
    )
    storage_endpoint: str | None = Field(
        None, description="The address of an S3 or GCS that is not the vendor's."
    )
    storage_region: str = Field("us-east-1", description="Region of the S3 bucket.")
    storage_access_key_id: str | None = Field(
        None, description="S3 key; without one the machine's own identity."
    )
    storage_secret_access_key: SecretStr | None = Field(None, description="The secret of that key.")
    storage_allow_http: bool = Field(
        False, description="Whether the storage may be reached without TLS."
    )

    catalogs: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        repr=False,
        description="Iceberg catalogs by name, as PyIceberg takes them; type sql without a uri is"
        " our own database.",
    )
    maintenance_engines: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        repr=False,
        description="Remote engines by name: type trino or spark, url, catalog as it is called"
        " there, user, secrets.",
    )
    maintenance_seconds: Annotated[float, Field(ge=10, le=86_400)] = Field(
        600.0, description="Pace of the planner of table maintenance."
    )

    export_max_duration_seconds: Annotated[int, Field(ge=60, le=86_400)] = Field(
        3600, description="How long one export may take."
    )

    export_max_rows: Annotated[int, Field(ge=1, le=10**15)] = Field(
        1_000_000_000,
        description="Most rows of one export of an analyst: one label or edge type of a snapshot.",
    )
    export_max_mb: Annotated[int, Field(ge=1, le=10**9)] = Field(
        100_000,
        description="Most megabytes of one export of an analyst, as they are read from the source.",
    )
    export_max_rows_admin: Annotated[int, Field(ge=1, le=10**15)] = Field(
        10_000_000_000, description="Most rows of one export of an admin or operator."
    )
    export_max_mb_admin: Annotated[int, Field(ge=1, le=10**9)] = Field(
        1_000_000, description="Most megabytes of one export of an admin or operator."
    )
    fair_share_seconds: Annotated[float, Field(ge=0, le=600)] = Field(
        5.0,
        description="How far apart the waiting jobs of one user are put in the order of a queue,"
        " so that others come in between; 0 means first come, first served.",
    )

    active_snapshots_per_user: Annotated[int, Field(ge=1, le=100_000)] = Field(
        50, description="How many snapshots of one user may be under way at once."
    )
    active_runs_per_user: Annotated[int, Field(ge=1, le=100_000)] = Field(
        50, description="How many runs of recipes of one user may be under way at once."
    )

    reconcile_candidates_per_row: Annotated[int, Field(ge=1, le=10_000)] = Field(
        20,
        description="Candidate pairs that a rule of a reconciliation may have for each record of"
        " both sides; a recipe may say otherwise in limits.candidates_per_row.",
    )

    reconcile_memory_mb: Annotated[int, Field(ge=64, le=10_000_000)] = Field(
        2048, description="Memory of the engine that matches one run, in a worker."
    )
    reconcile_spill_mb: Annotated[int, Field(ge=1, le=100_000_000)] = Field(
        50_000,
        description="Temporary disk of the engine that matches one run, in a worker; never more"
        " than is free.",
    )

    upload_max_mb: Annotated[int, Field(ge=1, le=100_000)] = Field(
        1024, description="Largest file that may be uploaded, in megabytes."
    )
    upload_unpacked_mb: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        10_240, description="What an uploaded file may unpack to, in megabytes."
    )
    upload_ratio: Annotated[int, Field(ge=2, le=100_000)] = Field(
        200,
        description="How many times its own size an uploaded workbook or .csv.gz may unpack to;"
        " what unpacks to less than 10 MB is not refused for it.",
    )
    upload_rows: Annotated[int, Field(ge=1, le=10_000_000_000)] = Field(
        100_000_000, description="Rows that an uploaded file may have."
    )
    upload_columns: Annotated[int, Field(ge=1, le=100_000)] = Field(
        16_384, description="Columns that an uploaded file may have."
    )
    upload_cells: Annotated[int, Field(ge=1, le=10_000_000_000)] = Field(
        10_000_000,
        description="Cells that an uploaded sheet may reach over, empty ones too: its last row"
        " times its last column.",
    )
    upload_memory_mb: Annotated[int, Field(ge=64, le=1_000_000)] = Field(
        1024, description="Memory of the process that reads one uploaded file, in megabytes."
    )
    upload_cpu_seconds: Annotated[int, Field(ge=1, le=86_400)] = Field(
        300, description="Processor time that reading one uploaded file may take."
    )
    upload_seconds: Annotated[int, Field(ge=1, le=86_400)] = Field(
        600, description="Time that reading one uploaded file may take; then its process is killed."
    )
    upload_parallel: Annotated[int, Field(ge=1, le=64)] = Field(
        2, description="Uploaded files that one control plane process reads at once; others wait."
    )
    uploads_at_once: Annotated[int, Field(ge=1, le=1000)] = Field(
        32,
        description="Files that one control-plane process receives or reads at once: with"
        " upload_max_mb that bounds its temporary disk. More wait, then get 429.",
    )
    uploads_at_once_per_user: Annotated[int, Field(ge=1, le=1000)] = Field(
        4, description="How many of them may be one user's; more wait, then get 429."
    )
    upload_quota_mb: Annotated[int, Field(ge=1, le=100_000_000)] = Field(
        10_240,
        description="What the uploads of one user may take together, as stored, in megabytes.",
    )
    upload_quota_files: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        1000, description="Uploads that one user may have."
    )
    upload_days: Annotated[int, Field(ge=1, le=3650)] = Field(
        30, description="Days after its last use by a run when an upload is deleted."
    )

    instance_memory_per_user_gb: Annotated[int, Field(ge=2, le=100_000)] = Field(
        64, description="Memory that the instances of one user may have together."
    )
    instance_memory_total_gb: Annotated[int, Field(ge=2, le=1_000_000)] = Field(
        256, description="Memory that all instances may have together."
    )

    launcher: Literal["subprocess", "kubernetes"] = Field(
        "subprocess",
        description="Where graph servers run: as processes of the control plane's machine, or each"
        " in a pod of its own.",
    )
    kubernetes_namespace: str | None = Field(
        None,
        description="Namespace of the pods of graph servers; unset means the one of the control"
        " plane's own pod, or of the kubeconfig.",
    )
    kubernetes_image: str | None = Field(
        None, description="Image of graph servers: Penstock with the extra `graph`."
    )
    kubernetes_image_pull: Literal["Always", "IfNotPresent", "Never"] = Field(
        "IfNotPresent", description="When nodes pull that image."
    )
    kubernetes_python: str = Field("python", description="The Python of that image.")
    kubernetes_url: str | None = Field(
        None,
        description="Where pods find the control plane, such as http://penstock.penstock.svc:8080;"
        " unset means `url`.",
    )
    kubernetes_installation: Annotated[
        str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")
    ] = Field(
        "penstock",
        description="Label app.kubernetes.io/instance of the pods: installations that share a"
        " namespace need different ones.",
    )
    kubernetes_kubeconfig: Path | None = Field(
        None,
        description="A kubeconfig file; unset means the service account of the control plane's own"
        " pod.",
    )
    kubernetes_service_account: str | None = Field(
        None,
        description="Service account of the pods of graph servers. With `token_review_wrappers`"
        " they call the control plane with its token.",
    )
    kubernetes_node_selector: dict[str, str] = Field(
        default_factory=dict, description="Labels of the nodes that graph servers may run on."
    )
    kubernetes_tolerations: list[dict[str, str | int]] = Field(
        default_factory=list, description="Taints that pods of graph servers tolerate."
    )
    kubernetes_volume_gb: Annotated[int, Field(ge=1, le=100_000)] = Field(
        10, description="Disk of a graph server."
    )
    kubernetes_storage_class: str | None = Field(
        None,
        description="Storage class of that disk, a generic ephemeral volume; unset means the"
        " node's own disk (emptyDir).",
    )
    kubernetes_cpu_request_share: Annotated[float, Field(gt=0, le=1)] = Field(
        0.25,
        description="Share of an instance's cores that its pod requests; it may use all of them"
        " while the node has some to spare.",
    )
    kubernetes_schedule_seconds: Annotated[int, Field(ge=1, le=540)] = Field(
        300,
        description="How long an instance waits for a node with room; an autoscaler needs some"
        " minutes.",
    )
    kubernetes_drain_seconds: Annotated[int, Field(ge=0, le=3600)] = Field(
        30,
        description="How long a graph server whose pod is deleted may go on with an algorithm and"
        " with queries; the pod's grace is 15 seconds longer.",
    )
    kubernetes_pod_patch: dict[str, Any] = Field(
        default_factory=dict,
        description="Merged into the pods of graph servers, lists of named things by name:"
        ' {"spec": {"priorityClassName": "high"}}.',
    )

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Least level that is logged."
    )
    log_form: Literal["json", "text"] = Field(
        "json", description="JSON for machines, text for people."
    )

    max_payload_bytes: Annotated[int, Field(ge=1024, le=64 * 1024 * 1024)] = Field(
        1024 * 1024, description="Largest payload, state or result of a job."
    )
    bell_debounce_ms: Annotated[int, Field(ge=0, le=1000)] = Field(
        8, description="How long wake-ups are gathered."
    )
    reap_seconds: Annotated[float, Field(gt=0, le=60)] = Field(
        5.0, description="Pace of the reaper."
    )
    lease_seconds: dict[str, Annotated[int, Field(ge=2, le=86_400)]] = Field(
        default_factory=dict,
        description="How long a job stays with a worker that is not heard of, by kind, where it is"
        " not the default, as"
        ' {"maintenance": 1800}. Longer than the kind\'s heartbeat; it holds for jobs that are'
        " enqueued from then on.",
    )
    retention_days: Annotated[int, Field(ge=1, le=3650)] = Field(
        90, description="How long ended jobs are kept."
    )

    queue: Literal["postgresql", "nats"] = Field(
        "postgresql",
        description="What announces jobs that became ready: notifications of PostgreSQL, or NATS"
        " JetStream as well. Jobs are kept in PostgreSQL either way.",
    )
    nats_url: str | None = Field(
        None,
        description="Servers of NATS, with commas between them: nats://nats-0:4222,nats://nats-1:4222."
        " tls:// asks for TLS.",
    )
    nats_user: str | None = Field(None, description="User of NATS.")
    nats_password: SecretStr | None = Field(None, description="The password of that user.")
    nats_token: SecretStr | None = Field(None, description="A token instead of a user of NATS.")
    nats_credentials: Path | None = Field(
        None, description="A .creds file of NATS (JWT and seed) instead of a user."
    )
    nats_tls_ca: Path | None = Field(
        None, description="Authority of the certificate of NATS in PEM form, if it is private."
    )
    nats_tls_cert: Path | None = Field(
        None, description="Our certificate in PEM form, for a NATS that wants one."
    )
    nats_tls_key: Path | None = Field(None, description="The key of that certificate.")
    nats_prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")] = Field(
        "penstock",
        description="What the streams of NATS begin with: penstock-stage and penstock-exec.",
    )
    nats_stage_queues: str = Field(
        "stage",
        description="Queues that are announced in the stream stage, with commas between them; all"
        " others are announced in the stream exec.",
    )
    nats_stream_mb: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        256,
        description="Largest size of a stream that is created, in megabytes; a million"
        " announcements need about 200. What does not fit waits in the database.",
    )
    nats_replicas: Annotated[int, Field(ge=1, le=5)] = Field(
        1, description="Copies of a stream that is created: 3 for a cluster of NATS."
    )

    worker_queues: str = Field(
        "default,export,publish,stage,match,maintenance", description="Queues a worker serves."
    )
    worker_name: str | None = Field(
        None,
        description="What a worker is called. A process that starts under the name of an earlier"
        " one takes over what that one ran, at once: two that live must not share it. Unset"
        " means: a new name at each start.",
    )
    worker_poll_seconds: Annotated[float, Field(ge=1, le=55)] = Field(
        50.0,
        description="How long a worker waits for a job before it asks again. A proxy between it"
        " and the control plane must be more patient.",
    )
    worker_slots: Annotated[int, Field(ge=1, le=1000)] = Field(
        50, description="Jobs one worker runs at once."
    )
    worker_grace_seconds: Annotated[float, Field(ge=0, le=3600)] = Field(
        20.0,
        description="How long short work may end after SIGTERM before the rest is handed back.",
    )
    worker_host: str = Field("127.0.0.1", description="Address of a worker's health and metrics.")
    worker_port: Annotated[int, Field(ge=0, le=65535)] = Field(
        9090, description="Port of a worker's health; 0 picks one."
    )

    @model_validator(mode="after")
    def _pooler_is_in_front(self) -> Self:
        if self.database_direct_url is not None and self.database_url is None:
            raise ValueError(
                "database_direct_url is set without database_url, the address of the pooler"
            )
        return self

    @model_validator(mode="after")
    def _outbound_allow_is_readable(self) -> Self:
        try:
            allow_list(self.outbound_allow)
        except InvalidInput as e:
            raise ValueError(f"outbound_allow: {e.message} {e.hint}") from None
        return self

    @property
    def outbound_policy(self) -> OutboundPolicy:
        """Where data sources and callbacks may lead."""
        return OutboundPolicy(
            private=self.private_sources,
            allow=allow_list(self.outbound_allow),
            answer_bytes=self.outbound_answer_mb * 1024 * 1024,
        )

    @model_validator(mode="after")
    def _nats_is_complete(self) -> Self:
        if self.queue == "nats" and not (self.nats_url or "").strip(" ,"):
            raise ValueError("queue is nats, and nats_url does not say where NATS is")
        if (self.nats_tls_cert is None) != (self.nats_tls_key is None):
            raise ValueError("nats_tls_cert and nats_tls_key are set together, or neither")
        if (self.nats_user is None) != (self.nats_password is None):
            raise ValueError("nats_user and nats_password are set together, or neither")
        return self

    @model_validator(mode="after")
    def _certificate_has_its_key(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key are set together, or neither")
        return self

    @property
    def scheme(self) -> str:
        """What the control plane itself speaks."""
        return "http" if self.tls_cert is None else "https"

    @property
    def control_plane_url(self) -> str:
        """Where workers and graph servers find the control plane."""
        return self.url or f"{self.scheme}://{self.host}:{self.port}"

    @property
    def secret_keys(self) -> list[str]:
        """The key that seals, then those that only open; none without a key."""
        if self.secret_key is None:
            return []
        old = self.secret_keys_old.get_secret_value() if self.secret_keys_old else ""
        return [
            self.secret_key.get_secret_value(),
            *(key for key in map(str.strip, old.split(",")) if key),
        ]

    @property
    def database_dsn(self) -> str | None:
        """The address of the server itself, past any pooler; None: the embedded one."""
        url = self.database_direct_url or self.database_url
        return None if url is None else url.get_secret_value()

    @property
    def database_pooler(self) -> str | None:
        """The address of the pooler in front of the database, if there is one."""
        if self.database_url is None or self.database_direct_url is None:
            return None
        return self.database_url.get_secret_value()

    @model_validator(mode="after")
    def _proxy_is_named(self) -> Self:
        _networks(self.trusted_proxies)
        if self.trusted_headers and not self.trusted_proxies and self.trusted_proxy_secret is None:
            raise ValueError(
                "trusted_headers is on, and nothing tells the proxy from others: set"
                " trusted_proxies to its address or trusted_proxy_secret to a shared secret"
            )
        secret = self.trusted_proxy_secret
        if secret is not None and len(secret.get_secret_value()) < LEAST_SECRET:
            raise ValueError(f"trusted_proxy_secret must have at least {LEAST_SECRET} characters")
        return self

    @property
    def proxy_networks(self) -> tuple[Network, ...]:
        return _networks(self.trusted_proxies)

    @property
    def is_local_only(self) -> bool:
        if self.local_only is not None:
            return self.local_only
        return self.database_url is None and is_loopback(self.host) and not self.trusted_headers

    @property
    def private_sources(self) -> bool:
        return (
            is_loopback(self.host)
            if self.allow_private_sources is None
            else self.allow_private_sources
        )

    @property
    def storage_root(self) -> str:
        """The storage in force: without another one, a folder of our home."""
        return self.storage_url or f"file://{self.home / 'storage'}"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        toml = TomlConfigSettingsSource(settings_cls, toml_file=_config_file())
        return init_settings, env_settings, file_secret_settings, toml


def _networks(text: str | None) -> tuple[Network, ...]:
    parts = filter(None, map(str.strip, (text or "").split(",")))
    try:
        return tuple(ip_network(part) for part in parts)
    except ValueError as e:
        raise ValueError(
            f"trusted_proxies: {e}; write addresses such as 10.0.0.7,10.1.0.0/16"
        ) from None


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _config_file() -> Path:
    return Path(os.environ.get("PENSTOCK_CONFIG") or default_home() / "penstock.toml")


def load(**overrides: Any) -> Settings:
    """The settings in force; a wrong one is named in a sentence, never in a traceback."""
    secrets = os.environ.get("PENSTOCK_SECRETS_DIR") or None
    if (named := os.environ.get("PENSTOCK_CONFIG")) and not Path(named).is_file():
        raise InvalidInput(f"PENSTOCK_CONFIG names {named}, which is not a file.")
    try:
        return Settings(_secrets_dir=secrets, **overrides)
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        if not name:
            raise InvalidInput(
                f"Settings: {first['msg'].removeprefix('Value error, ')}.",
                hint=f"Settings are PENSTOCK_* in the environment, or lines of {_config_file()}.",
            ) from None
        raise InvalidInput(
            f"Setting {name}: {first['msg']}.",
            hint=f"Set PENSTOCK_{name.upper()} or {name} in {_config_file()}.",
        ) from None
