"""The allowlist of syntax tree nodes: every node of a query must be one of these.

Functions are checked by name (`calls.py`); here are the structure, the operators, and the function
nodes that have no name in the text: operators, literals, and nodes that the parser adds around an
argument.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.guard.errors import SqlRefused
from penstock.guard.size_limits import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_STRUCTURE = """
    Alias All Any CTE Column Cube Distinct Dot Except Fetch Filter From Group GroupingSets Having
    HavingMax HistoricalData Identifier IgnoreNulls IndexTableHint Intersect Join Kwarg Lambda
    Lateral Limit LimitOptions Offset Order Ordered OverflowTruncateBehavior Paren Partition Pivot
    PivotAlias Qualify RespectNulls Rollup Select Star Subquery Table TableAlias TableSample Tuple
    Union UnpivotColumns Values Version Where Window WindowSpec With WithinGroup
"""
_VALUES = """
    BitString Boolean Bracket ByteString ColumnDef Comprehension DataType DataTypeParam HexString
    Interval IntervalSpan Literal National Null PropertyEQ RawString Slice TimeUnit UnicodeString
    Var
"""
_OPERATORS = """
    Add Adjacent AtTimeZone Between BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr
    BitwiseRightShift BitwiseXor DPipe Div EQ Escape ExtendsLeft ExtendsRight GT GTE Glob ILike In
    IntDiv Is LT LTE Like Mod Mul NEQ Neg Not NullSafeEQ NullSafeNEQ Overlaps SimilarTo Sub
"""
_JSON = """
    FormatJson JSON JSONColumnDef JSONExtractQuote JSONKeyValue JSONPath JSONPathFilter JSONPathKey
    JSONPathRecursive JSONPathRoot JSONPathScript JSONPathSelector JSONPathSlice JSONPathSubscript
    JSONPathUnion JSONPathWildcard JSONSchema JSONValue OnCondition
"""
_NAMELESS_FUNCTIONS = """
    And Array ArrayContainedBy ArrayContainsAll ArrayOverlaps Case Cast CastToStrType Chr Collate
    Columns Concat ConvertToCharset CurrentDate CurrentDatetime CurrentTime CurrentTimestamp Exists
    Extract GroupConcat If JSONArrayContains JSONBContains JSONBContainsAllTopKeys
    JSONBContainsAnyTopKeys JSONBContainsTopKey JSONBDeleteAtPath JSONBExtract JSONBExtractScalar
    JSONBPathExists JSONCast JSONExtract JSONExtractScalar JSONObject JSONObjectAgg JSONTable
    Localtime Localtimestamp Map MatchAgainst NetFunc Normalize Or Overlay ParseJSON Pow RegexpILike
    RegexpLike SafeFunc StartsWith StrPosition Struct Substring ToMap Trim TryCast Unnest Xor
"""

STRUCTURE = frozenset(
    getattr(exp, name) for name in (_STRUCTURE + _VALUES + _OPERATORS + _JSON).split()
)
NAMELESS = frozenset(getattr(exp, name) for name in _NAMELESS_FUNCTIONS.split())
NAMELESS_IN_FROM = frozenset({exp.Unnest, exp.JSONTable})

_DISPLAY_NAMES: dict[type[exp.Expr], str] = {
    exp.Command: "A command",
    exp.Delete: "DELETE",
    exp.FunctionSpecification: "WITH FUNCTION",
    exp.Hint: "An optimizer hint",
    exp.Insert: "INSERT",
    exp.Into: "SELECT … INTO",
    exp.Lock: "Locking rows (FOR UPDATE, FOR SHARE)",
    exp.Merge: "MERGE",
    exp.Operator: "OPERATOR(…)",
    exp.Parameter: "A variable (@…)",
    exp.Placeholder: "A parameter (?, :name, $1)",
    exp.SessionParameter: "A system variable (@@…)",
    exp.Update: "UPDATE",
}
_QUOTED_TEXT = (
    exp.ByteString,
    exp.Identifier,
    exp.JSONPathPart,
    exp.Literal,
    exp.National,
    exp.RawString,
    exp.UnicodeString,
)
_OTHER_TYPES = frozenset({"cidr", "citext", "ltree", "macaddr", "tsquery", "tsvector", "vector"})
_WORDS = re.compile(r"[\w .:-]*")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def check_nodes(nodes: Iterable[exp.Expr]) -> None:
    """Refuse a node of an unlisted type, and text that could change its meaning when the tree is
    written as SQL."""
    for node in nodes:
        if type(node) not in STRUCTURE and not isinstance(node, exp.Func):
            raise SqlRefused(
                f"{_DISPLAY_NAMES.get(type(node), _type_name(node))} is not allowed in a query.",
                **place_of(node),
            )
        match node:
            case exp.Identifier():
                _check_identifier(node)
            case exp.Literal(is_string=False) if not _NUMBER.fullmatch(node.name):
                raise SqlRefused(f"{node.name[:40]!r} is not a number.")
            case exp.DataType() if (
                node.this == exp.DType.USERDEFINED and node.sql().strip('"') not in _OTHER_TYPES
            ):
                raise SqlRefused(f"Type {node.sql()[:80]} is not one of the built-in types.")
            case _ if not isinstance(node, _QUOTED_TEXT):
                _check_words(node)


def _check_identifier(node: exp.Identifier) -> None:
    if not node.name or not node.name.isprintable() or set(node.name) & set('"`\\'):
        raise SqlRefused(
            f"The name {node.name[:80]!r} is empty or has a quote, a backslash or an invisible"
            " character.",
            hint="Use another alias, or rename the column in a view.",
            **place_of(node),
        )


def _check_words(node: exp.Expr) -> None:
    for value in node.args.values():
        if isinstance(value, str) and not _WORDS.fullmatch(value):
            raise SqlRefused(f"{value[:80]!r} is not allowed in a query.", **place_of(node))


def _type_name(node: exp.Expr) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
