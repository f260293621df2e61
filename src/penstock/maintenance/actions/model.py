"""The maintenance actions with their options and limits, and the outcome of an action.

Actions always run in the same order. Snapshots are expired first, because the cost of each commit
grows with their number; orphan files are removed last, because nothing depends on them.
"""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from penstock.kit.errors import InvalidInput
from penstock.maintenance.errors import UnknownAction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.kit.json_value import JsonObject, JsonValue

MB = 1024 * 1024
DAY_SECONDS = 86_400
OptionValue: TypeAlias = bool | int | float | str


class Name(enum.StrEnum):
    """The names of the actions, in the order in which they run."""

    EXPIRE_SNAPSHOTS = "expire_snapshots"
    REWRITE_DATA_FILES = "rewrite_data_files"
    REWRITE_POSITION_DELETE_FILES = "rewrite_position_delete_files"
    REWRITE_MANIFESTS = "rewrite_manifests"
    REMOVE_ORPHAN_FILES = "remove_orphan_files"


ORDER = tuple(Name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """The type of an option: a number with limits, a string, or a boolean."""

    kind: type
    low: float = 0
    high: float = 0


_BUDGETS = {
    "max_files": Option(kind=int, low=1, high=10_000_000),
    "max_bytes": Option(kind=int, low=1, high=1 << 50),
    "max_seconds": Option(kind=float, low=1, high=86_400),
}
OPTIONS: Mapping[Name, Mapping[str, Option]] = {
    Name.EXPIRE_SNAPSHOTS: _BUDGETS
    | {
        "older_than_seconds": Option(kind=int, low=0, high=3650 * DAY_SECONDS),
        "retain_last": Option(kind=int, low=1, high=1_000_000),
    },
    Name.REWRITE_DATA_FILES: _BUDGETS
    | {
        "target_file_bytes": Option(kind=int, low=MB // 16, high=16 * 1024 * MB),
        "min_input_files": Option(kind=int, low=1, high=100_000),
        "max_group_bytes": Option(kind=int, low=MB, high=1 << 41),
        "hot_seconds": Option(kind=int, low=0, high=30 * DAY_SECONDS),
        "sort_order": Option(kind=str),
        "where": Option(kind=str),
        "rewrite_all": Option(kind=bool),
        "force": Option(kind=bool),
    },
    Name.REWRITE_POSITION_DELETE_FILES: _BUDGETS
    | {"min_input_files": Option(kind=int, low=1, high=100_000)},
    Name.REWRITE_MANIFESTS: _BUDGETS
    | {"target_bytes": Option(kind=int, low=16 * 1024, high=1024 * MB)},
    Name.REMOVE_ORPHAN_FILES: _BUDGETS
    | {"older_than_seconds": Option(kind=int, low=DAY_SECONDS, high=3650 * DAY_SECONDS)},
}
MAX_TEXT = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    name: Name
    options: Mapping[str, OptionValue] = field(default_factory=dict)

    def number(self, option: str, default: float) -> int:
        return int(self.options.get(option, default))

    def text(self, option: str) -> str | None:
        return None if option not in self.options else str(self.options[option])

    def to_json(self) -> JsonObject:
        return {"name": str(self.name), **self.options}


def parse(requested: Sequence[str | Mapping[str, JsonValue]]) -> tuple[Action, ...]:
    """Validate requested actions and put them in the order in which they run."""
    if not requested:
        raise UnknownAction("No action was requested.", hint=f"Known actions: {', '.join(ORDER)}.")
    actions = [_action(request) for request in requested]
    names = [action.name for action in actions]
    if len(set(names)) < len(names):
        raise UnknownAction("An action was requested twice.")
    return tuple(sorted(actions, key=lambda action: ORDER.index(action.name)))


def _action(request: str | Mapping[str, JsonValue]) -> Action:
    fields = {"name": request} if isinstance(request, str) else dict(request)
    word = fields.pop("name", None)
    if word not in set(ORDER):
        raise UnknownAction(
            f"Unknown action {str(word)[:80]!r}.", hint=f"Known actions: {', '.join(ORDER)}."
        )
    name = Name(word)
    return Action(
        name=name, options={key: _checked(name, key, value) for key, value in fields.items()}
    )


def _checked(name: Name, key: str, value: JsonValue) -> OptionValue:
    option = OPTIONS[name].get(key)
    if option is None:
        raise InvalidInput(
            f"{name} has no option {key[:80]!r}.",
            hint=f"Its options: {', '.join(OPTIONS[name])}.",
            field=key[:80],
        )
    if option.kind is bool or option.kind is str:
        fits = isinstance(value, option.kind) and (
            option.kind is bool or 0 < len(str(value)) <= MAX_TEXT
        )
        expected = (
            "true or false" if option.kind is bool else f"a text of 1 to {MAX_TEXT} characters"
        )
    else:
        numeric = isinstance(value, int | option.kind) and not isinstance(value, bool)
        fits = numeric and option.low <= float(str(value)) <= option.high
        expected = f"a number from {option.low:g} to {option.high:g}"
    if not fits or not isinstance(value, OptionValue):
        raise InvalidInput(f"{name}: {key} must be {expected}.", field=key)
    return value


class Ended(enum.StrEnum):
    COMPLETED = "completed"
    NOTHING_TO_DO = "nothing_to_do"
    PARTIAL = "partial"
    """The budget ended the action; what was done until then is committed."""
    ABANDONED = "abandoned"
    """Another writer's commit conflicts; the table is unchanged by us."""
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"
    PLANNED = "planned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of an action, the same for all actions and engines. In a plan, `files` lists
    exactly the files that would change."""

    action: Name
    status: Ended
    engine: str = "embedded"
    rewritten_files: int = 0
    rewritten_bytes: int = 0
    added_files: int = 0
    added_bytes: int = 0
    rows: int = 0
    deleted_files: int = 0
    deleted_bytes: int = 0
    expired_snapshots: int = 0
    commits: int = 0
    tries: int = 0
    snapshot_ids: tuple[int, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    files_left_out: int = 0
    before: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)
    message: str = ""
    seconds: float = 0.0

    def to_json(self) -> JsonObject:
        return asdict(self)
