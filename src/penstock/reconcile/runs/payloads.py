"""What the jobs of a run carry, and where its files are in the object store.

Written by `repository` in the control plane, read by the handlers in workers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from penstock.sources.contract import Chunk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.jobs.model import Json
    from penstock.kit.json_value import JsonObject, JsonValue
    from penstock.reconcile.matching.decided import Key
    from penstock.reconcile.recipes.model import RecipeDocument
    from penstock.reconcile.runs.side_input import SideInput

STAGE_PLAN, STAGE_CHUNK, MATCH = "stage_plan", "stage_chunk", "match"
START, CALLBACK, CLEAN = "run_start", "run_callback", "run_clean"


def staging_prefix(run_id: int) -> str:
    return f"staging/run-{run_id}/"


def evidence_prefix(run_id: int) -> str:
    return f"runs/{run_id}/"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlanPayload:
    """Plan the staging of one side; `side_document` and `staging` come from the recipe, with the
    run's parameters applied."""

    run_id: int
    side: str
    data_source_id: int
    side_document: Mapping[str, JsonValue]
    staging: Mapping[str, JsonValue] = field(default_factory=dict)

    def payload(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def read(cls, payload: Json) -> StagePlanPayload:
        return cls(**payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageChunkPayload:
    """Stage one chunk. `plan` is the attempt of the plan job that created it; chunks of an outdated
    attempt do not count."""

    run_id: int
    side: str
    data_source_id: int
    plan: str
    plan_job: int
    number: int
    sql: str
    snapshot: str | None
    extra: Mapping[str, JsonValue] = field(default_factory=dict)

    def payload(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def read(cls, payload: Json) -> StageChunkPayload:
        return cls(**payload)

    @property
    def prefix(self) -> str:
        return f"{staging_prefix(self.run_id)}{self.side}/{self.plan}/chunk-{self.number:02d}/"

    def chunk(self) -> Chunk:
        return Chunk(number=self.number, sql=self.sql, snapshot=self.snapshot, extra=self.extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchPayload:
    """`inputs` has for each side the keys of its Parquet files, in order, and what they were read
    from.

    `before` are the keys of the open items of the recipe's previous run, `decided` the manual
    decisions.
    """

    run_id: int
    recipe: RecipeDocument
    recipe_version: int | None
    inputs: Mapping[str, SideInput]
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    decided: Mapping[str, Sequence[tuple[Key, Key]]] = field(default_factory=dict)
    before: Sequence[str] = ()

    def payload(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def read(cls, payload: Json) -> MatchPayload:
        return cls(**payload)
