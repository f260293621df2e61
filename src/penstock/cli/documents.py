"""Types of the JSON documents that commands print with `--json`; tests check every command.

Fields may be added, none is renamed or taken away: scripts read these.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from penstock.client import shapes
from penstock.client.graph_shapes import Cell  # noqa: TC001 - the tests read the fields' types
from penstock.client.json_value import JsonObject
from penstock.client.words import EvidenceTable, JobStatus  # noqa: TC001 - the tests read the fields' types


class Up(TypedDict):
    home: str
    pid: int
    url: str
    started_at: str
    database: str
    login_url: NotRequired[str]
    """Opened once, it signs a browser in."""


class LoginLink(TypedDict):
    url: str
    expires_at: str


class RotatedToken(TypedDict):
    file: str


class Stopped(TypedDict):
    stopped: bool
    pid: NotRequired[int]


class Status(TypedDict):
    """`url` is null when nothing runs here, and then it is all there is."""

    url: str | None
    ready: NotRequired[shapes.Readiness]
    queues: NotRequired[list[shapes.Queue]]
    workers: NotRequired[list[shapes.Worker]]
    drain: NotRequired[shapes.Drain]


class Finding(TypedDict):
    what: str
    ok: bool
    says: str
    mend: str | None
    severity: Literal["error", "warning"]
    """A warning is an insecure setting; it changes no exit code."""


Setting = TypedDict("Setting", {"value": object, "from": str})


class Completion(TypedDict):
    shell: Literal["bash", "zsh", "fish"]
    script: str


class Ended(TypedDict):
    exit_code: int


class Migration(TypedDict):
    room: str
    version: int
    name: str
    sql: str


class Migrated(TypedDict):
    """`migrations` with `--print`, `applied` without."""

    applied: NotRequired[list[str]]
    migrations: NotRequired[list[Migration]]


class Rekeyed(TypedDict):
    """`key` with `--new-key`, the counts without."""

    key: NotRequired[str]
    anew: NotRequired[int]
    already: NotRequired[int]


class Demo(TypedDict):
    storm: JsonObject
    rings: JsonObject
    books: JsonObject
    lake: JsonObject
    page: str
    home: str
    seconds: float
    ok: bool


class Part(TypedDict):
    path: str
    rows: int
    bytes: int


class Exported(TypedDict):
    place: str
    manifest: str
    rows: int
    bytes: int
    parts: list[Part]
    columns: list[shapes.UploadColumn]
    seconds: float
    rows_per_second: int


class Executed(TypedDict):
    """A run of an algorithm, with whatever the algorithm says under `result`."""

    execution_id: str
    algorithm_name: str
    status: str
    result: NotRequired[JsonObject | None]


class Algorithm(TypedDict):
    name: str
    category: str
    description: str


class SnapshotShown(shapes.Snapshot):
    exports: list[shapes.JobProgress]


class InstanceShown(shapes.Instance):
    events: list[shapes.EventShown]


class Queried(TypedDict):
    columns: list[str]
    column_types: list[str]
    rows: list[list[Cell]]
    truncated: bool


class Queues(TypedDict):
    queues: list[shapes.Queue]
    workers: list[shapes.Worker]


class Jobs(TypedDict):
    data: list[shapes.JobSummary]
    meta: shapes.Meta


class Change(TypedDict):
    status: str
    percent: float
    step: str


class Tailed(TypedDict):
    id: int
    status: JobStatus
    changes: list[Change]


class SourceAdded(TypedDict):
    source: shapes.DataSource
    test: shapes.TestResult


class Deleted(TypedDict):
    deleted: int


class Terminated(TypedDict):
    terminated: int


class Evidence(TypedDict):
    """With `--to`; without, the rows themselves are printed."""

    run_id: int
    table: EvidenceTable
    form: str
    file: str
    bytes: int


class Report(TypedDict):
    run_id: int
    file: str
    bytes: int


DOCUMENTS: dict[str, object] = {
    "up": Up,
    "down": Stopped,
    "status": Status,
    "login": LoginLink,
    "doctor": list[Finding],
    "demo": Demo,
    "config": dict[str, Setting],
    "completion": Completion,
    "serve": Ended,
    "worker": Ended,
    "migrate": Migrated,
    "rekey": Rekeyed,
    "export": Exported,
    "query": Queried,
    "algo": Executed | list[Algorithm],
    "evidence": Evidence | list[JsonObject],
    "maintain": list[shapes.ActionView] | shapes.Outcomes | shapes.JobDetail,
    "queue": Queues,
    "drain": shapes.Drain,
    "job list": Jobs,
    "job show": shapes.JobDetail,
    "job tail": Tailed,
    "job cancel": shapes.JobCancelled,
    "job retry": shapes.JobEnqueued,
    "source list": list[shapes.DataSource],
    "source add": SourceAdded,
    "mapping list": list[shapes.Mapping],
    "mapping show": shapes.MappingDetail,
    "mapping create": shapes.MappingDetail,
    "mapping infer": shapes.Proposed,
    "mapping delete": Deleted,
    "snapshot list": list[shapes.Snapshot],
    "snapshot show": SnapshotShown,
    "snapshot create": shapes.Snapshot,
    "snapshot retry": shapes.Snapshot,
    "snapshot cancel": shapes.Snapshot,
    "snapshot delete": Deleted,
    "instance list": list[shapes.Instance],
    "instance show": InstanceShown,
    "instance start": shapes.Instance,
    "instance stop": Terminated,
    "recipe list": list[shapes.Recipe],
    "recipe show": shapes.Recipe,
    "recipe save": shapes.Recipe,
    "recipe validate": shapes.RecipeValidation,
    "recipe explain": list[shapes.RecipeStep],
    "run start": shapes.Run,
    "upload add": shapes.Upload,
    "upload list": list[shapes.Upload],
    "upload usage": shapes.UploadUsage,
    "upload delete": shapes.UploadDropped,
    "run list": list[shapes.Run],
    "run show": shapes.Run,
    "run cancel": shapes.Run,
    "run report": Report,
    "table list": list[shapes.TableListed],
    "table health": shapes.TableHealth,
    "table recommend": shapes.Recommendation,
    "table history": list[shapes.HistoryEntry],
    "share add": shapes.Share,
    "share list": list[shapes.Share],
    "share remove": shapes.Unshared,
    "user add": shapes.UserShown,
    "user list": shapes.UserList,
    "user role": shapes.UserShown,
    "user deactivate": shapes.UserShown,
    "key create": shapes.NewKey,
    "key list": shapes.KeyList,
    "key revoke": shapes.Revoked,
    "key rotate-operator": RotatedToken,
}
