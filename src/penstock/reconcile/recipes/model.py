"""The recipe: a document that says which records of two sources belong together.

Pydantic models of its form, without knowledge of columns: `validation` checks those. No I/O.
"""

from __future__ import annotations

import hashlib
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict, cast

import orjson
from pydantic import AfterValidator, Field, field_validator, model_validator

from penstock.engines.zones import UTC, is_zone
from penstock.reconcile.recipes.filters import ColumnName, Filter, Parameter, ParameterName, Part
from penstock.reconcile.recipes.patterns import check_replacement, group_count

if TYPE_CHECKING:
    from penstock.kit.json_value import JsonObject

MAX_RULES = 50
MAX_CONDITIONS = 20
MAX_KEY = 8
MAX_SQL = 100_000
MAX_SCALE = 6
MAX_FILTERS = 50
MAX_PARAMETERS = 50
MAX_COLUMNS = 1000
MAX_PER_ROW = 10_000

Pattern = Literal["1:1", "1:N", "M:1", "M:N"]
SideName = Literal["left", "right"]
SIDES: tuple[SideName, SideName] = ("left", "right")


def _plain(value: Decimal) -> Decimal:
    if not value.is_finite() or -int(value.as_tuple().exponent) > MAX_SCALE:
        raise ValueError(f"must be a number with at most {MAX_SCALE} decimals")
    return value


Amount = Annotated[Decimal, Field(ge=0, lt=Decimal(10) ** 15), AfterValidator(_plain)]
Percent = Annotated[Decimal, Field(ge=0, le=900, decimal_places=4)]
Days = Annotated[int, Field(ge=0, le=36_500)]


class Side(Part):
    """One side's records: a registered source's table or query, or an uploaded file."""

    source: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    table: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    query: Annotated[str, Field(min_length=1, max_length=MAX_SQL)] | None = None
    upload: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None
    primary_key: Annotated[tuple[ColumnName, ...], Field(min_length=1, max_length=MAX_KEY)]
    filters: Annotated[tuple[Filter, ...], Field(max_length=MAX_FILTERS)] = ()
    partition_key: ColumnName | None = None

    @field_validator("primary_key", mode="before")
    @classmethod
    def _several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_place(self) -> Side:
        if (self.source is None) == (self.upload is None):
            raise ValueError("name either a source or an upload")
        if self.source is not None and (self.table is None) == (self.query is None):
            raise ValueError("name either a table or a query of the source")
        if self.upload is not None and (self.table or self.query):
            raise ValueError("an upload is one table; leave table and query out")
        if len(set(self.primary_key)) != len(self.primary_key):
            raise ValueError("primary_key names a column twice")
        return self


class Sides(Part):
    left: Side
    right: Side


class Compare(Part):
    op: Literal["eq", "gt", "gte", "lt", "lte", "contains", "startswith", "endswith"]
    left: ColumnName
    right: ColumnName


class Within(Part):
    """Tolerance between two amounts: `absolute` or `percent` of the left one (either is enough), or
    `minus` and `plus`, the bounds of right - left. All bounds are inclusive."""

    absolute: Amount | None = None
    percent: Percent | None = None
    minus: Amount | None = None
    plus: Amount | None = None

    @model_validator(mode="after")
    def _some(self) -> Within:
        around = self.absolute is not None or self.percent is not None
        if around == (self.minus is not None or self.plus is not None):
            raise ValueError("give absolute or percent, or minus and plus")
        return self


class Tolerance(Within):
    op: Literal["tolerance"]
    left: ColumnName
    right: ColumnName


class SumWithin(Within):
    op: Literal["sum_within"]
    left: ColumnName
    right: ColumnName


class DateWindow(Part):
    """Right is at most `before` days before left and `after` days after it; `days` sets both."""

    op: Literal["date_window"]
    left: ColumnName
    right: ColumnName
    days: Days | None = None
    before: Days | None = None
    after: Days | None = None

    @model_validator(mode="after")
    def _some(self) -> DateWindow:
        if (self.days is None) == (self.before is None and self.after is None):
            raise ValueError("give days, or before and after")
        return self


class Regex(Part):
    """Of what every engine understands alike (see `patterns`); in `replace` a group is `\\1`."""

    regex: Annotated[str, Field(min_length=1, max_length=500)]
    replace: Annotated[str, Field(max_length=200)] = ""

    @field_validator("regex")
    @classmethod
    def _parses(cls, value: str) -> str:
        try:
            group_count(value)
        except ValueError as e:
            raise ValueError(f"not a regular expression of every engine: {e}") from None
        return value

    @model_validator(mode="after")
    def _groups(self) -> Regex:
        check_replacement(self.regex, self.replace)
        return self


Step = Literal["trim", "case", "punctuation", "spaces", "digits", "month", "year"] | Regex


class Normalized(Part):
    """Equal after the same steps on both sides, applied in order."""

    op: Literal["normalized"]
    left: ColumnName
    right: ColumnName
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=10)] = ("trim", "case")


class Similar(Part):
    """`edit`: 1 - edits / longer length. `token`: 2 x shared words / words. Both ignore case."""

    op: Literal["similar"]
    left: ColumnName
    right: ColumnName
    method: Literal["edit", "token"] = "edit"
    min_score: Annotated[Decimal, Field(gt=0, le=1, decimal_places=4)] = Decimal("0.85")


Condition = Annotated[
    Compare | Tolerance | SumWithin | DateWindow | Normalized | Similar, Field(discriminator="op")
]


class Rule(Part):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    pattern: Pattern = "1:1"
    conditions: Annotated[tuple[Condition, ...], Field(min_length=1, max_length=MAX_CONDITIONS)]


class Pair(Part):
    left: ColumnName
    right: ColumnName


class Compared(Pair):
    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")] | None = None

    @property
    def label(self) -> str:
        return self.name or re.sub(r"\W", "_", self.left)


class Chosen(Part):
    left: Annotated[tuple[ColumnName, ...], Field(max_length=MAX_COLUMNS)] = ()
    right: Annotated[tuple[ColumnName, ...], Field(max_length=MAX_COLUMNS)] = ()


class Output(Part):
    """`columns` are added to matched beside the keys (`wide`: all of them); `amount` is totalled,
    by `currency` if given."""

    columns: Chosen = Chosen()
    wide: bool = False
    amount: Pair | None = None
    currency: Pair | None = None


class Thresholds(Part):
    """The most that may stay unmatched, on either side, before the run fails."""

    max_unmatched_pct: Annotated[Decimal, Field(ge=0, le=100)] | None = None
    max_unmatched_amount: Annotated[Decimal, Field(ge=0)] | None = None


class Staging(Part):
    """How a staged source is split: the number of rows above which it is split, and the most
    chunks."""

    chunk_threshold_rows: Annotated[int, Field(ge=1, le=10**12)] = 1_000_000
    max_parallel_chunks: Annotated[int, Field(ge=1, le=100)] = 10


class MatchingLimits(Part):
    """The most candidate pairs per record of both sides before a rule is stopped; without a number
    the server's setting applies."""

    candidates_per_row: Annotated[int, Field(ge=1, le=MAX_PER_ROW)] | None = None


def _zone(value: str) -> str:
    if not is_zone(value):
        raise ValueError("this is not a time zone; write one such as Europe/Vienna or UTC")
    return value


class RecipeDocument(TypedDict, total=False):
    """A recipe as it is stored and sent, with the fields that are read without parsing it."""

    recipe_id: str
    name: str
    sources: dict[SideName, JsonObject]
    staging: JsonObject


class Recipe(Part):
    recipe_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")] | None = None
    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=4000)] = ""
    sources: Sides
    rules: Annotated[tuple[Rule, ...], Field(max_length=MAX_RULES)] = ()
    match_sql: Annotated[str, Field(min_length=1, max_length=MAX_SQL)] | None = None
    match_pattern: Pattern | None = None
    time_zone: Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_zone)] = UTC
    compare: Annotated[tuple[Compared, ...], Field(max_length=50)] = ()
    output: Output = Output()
    thresholds: Thresholds = Thresholds()
    parameters: dict[ParameterName, Parameter] = Field(
        default_factory=dict, max_length=MAX_PARAMETERS
    )
    engine: Annotated[str, Field(max_length=40)] | None = None
    staging: Staging = Staging()
    limits: MatchingLimits = MatchingLimits()

    @model_validator(mode="after")
    def _one_way(self) -> Recipe:
        if bool(self.rules) == (self.match_sql is not None):
            raise ValueError("give either rules or match_sql")
        if self.match_pattern is not None and self.match_sql is None:
            raise ValueError("match_pattern is for match_sql; a rule has a pattern of its own")
        return self

    def document(self) -> RecipeDocument:
        """The stored and displayed form: omitted fields stay omitted."""
        return cast("RecipeDocument", self.model_dump(mode="json", exclude_unset=True))

    @property
    def digest(self) -> str:
        """Equal for two recipes with the same meaning, whatever defaults they omit and in whatever
        order."""
        means_nothing = {"recipe_id", "name", "description", "staging", "limits"}
        meant = self.model_dump(mode="json", exclude=means_nothing)
        for field, usual in (("match_pattern", None), ("time_zone", UTC)):
            if meant[field] == usual:
                del meant[field]
        return hashlib.sha256(orjson.dumps(meant, option=orjson.OPT_SORT_KEYS)).hexdigest()
