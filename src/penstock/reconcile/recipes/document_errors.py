"""Turns Pydantic's validation errors into faults of a recipe: the path in the document, the
message, and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.reconcile.recipes.fault import Fault, nearest
from penstock.reconcile.recipes.filters import Filter, Parameter
from penstock.reconcile.recipes.model import (
    Chosen,
    Compare,
    Compared,
    DateWindow,
    MatchingLimits,
    Normalized,
    Output,
    Pair,
    Recipe,
    Regex,
    Rule,
    Side,
    Sides,
    Similar,
    Staging,
    SumWithin,
    Thresholds,
    Tolerance,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_core import ErrorDetails

    from penstock.reconcile.recipes.filters import Part

_TAGS: Mapping[str, type[Part]] = {
    **dict.fromkeys(
        ("eq", "gt", "gte", "lt", "lte", "contains", "startswith", "endswith"), Compare
    ),
    "tolerance": Tolerance,
    "sum_within": SumWithin,
    "date_window": DateWindow,
    "normalized": Normalized,
    "similar": Similar,
}
_PARTS: Mapping[str, type[Part]] = {
    "": Recipe,
    "sources": Sides,
    "left": Side,
    "right": Side,
    "filters": Filter,
    "rules": Rule,
    "steps": Regex,
    "compare": Compared,
    "output": Output,
    "columns": Chosen,
    "amount": Pair,
    "currency": Pair,
    "thresholds": Thresholds,
    "staging": Staging,
    "limits": MatchingLimits,
    **_TAGS,
}
_EXAMPLES: Mapping[type[Part], str] = {
    DateWindow: '{"left": "due", "op": "date_window", "right": "paid", "days": 3}',
    Filter: '{"column": "day", "op": "between", "value": ["2024-01-01", "2024-01-31"]}',
    Normalized: '{"left": "ref", "op": "normalized", "right": "ref", "steps": ["trim", "case"]}',
    Parameter: '{"type": "date", "default": "2024-01-31"}',
    Recipe: (
        '{"name": "monthly", "sources": {"left": …, "right": …}, "rules": '
        '[{"name": "exact", "conditions": […]}]}'
    ),
    Regex: r'{"regex": "^INV-([0-9]+)$", "replace": "\1"}',
    Side: '{"source": "ledger", "table": "invoices", "primary_key": ["id"]}',
    SumWithin: '{"left": "amount", "op": "sum_within", "right": "amount", "absolute": 0}',
    Tolerance: '{"left": "amount", "op": "tolerance", "right": "amount", "absolute": "0.02"}',
}
_BOUNDS = {
    "greater_than": "Give more than {gt}.",
    "greater_than_equal": "Give at least {ge}.",
    "less_than": "Give less than {lt}.",
    "less_than_equal": "Give at most {le}.",
    "decimal_max_places": "Leave at most {decimal_places} decimals.",
    "string_too_long": "Use at most {max_length} characters.",
    "string_too_short": "Use at least {min_length} characters.",
    "string_pattern_mismatch": "It must look like {pattern}",
    "too_long": "Leave at most {max_length}.",
    "too_short": "Give at least {min_length}.",
    "literal_error": "Use one of {expected}.",
}


def faults(errors: Sequence[ErrorDetails]) -> list[Fault]:
    """One fault per mistake: without errors that only follow from an inner one, or that belong to
    another member of a union."""
    plain = {
        error["loc"][:-1]
        for error in errors
        if error["type"] == "model_type" and "steps" in error["loc"]
    }
    meant = [
        error for error in errors if not ("steps" in error["loc"] and _other_choice(error, plain))
    ]
    faults_of_form = [_fault(error) for error in meant]
    short = {
        fault.path
        for fault, error in zip(faults_of_form, meant, strict=True)
        if error["type"] == "too_short"
    }
    within = {
        path for path in short if any(fault.path.startswith(f"{path}.") for fault in faults_of_form)
    }
    return [fault for fault in faults_of_form if fault.path not in within]


def _other_choice(error: ErrorDetails, plain: set[tuple[str | int, ...]]) -> bool:
    """A step is a word or a regex object; a value that is no object was meant as a word."""
    if error["type"] == "model_type":
        return True
    return error["type"] == "literal_error" and error["loc"][:-1] not in plain


def _fault(error: ErrorDetails) -> Fault:
    place = _place(error["loc"])
    path = ".".join(str(part) for part in place) or "recipe"
    part = _part(error["loc"])
    match error["type"]:
        case "extra_forbidden":
            names = list(_part(error["loc"][:-1]).model_fields)
            return Fault(
                path=path,
                message="Unknown field.",
                suggestion=nearest(str(place[-1]), names),
            )
        case "missing":
            return Fault(
                path=path,
                message="This field is required.",
                suggestion=_such_as(part, f"Add {place[-1]}"),
            )
        case "union_tag_invalid" | "union_tag_not_found":
            tag = str(error.get("ctx", {}).get("tag", ""))
            names = list(_TAGS)
            suggestion = nearest(tag, names, f"Use one of {', '.join(names)}.")
            return Fault(path=f"{path}.op", message="Unknown op.", suggestion=suggestion)
    message = str(error["msg"]).removeprefix("Value error, ").rstrip(".")
    bound = _BOUNDS.get(error["type"])
    suggestion = bound.format(**error.get("ctx", {})) if bound else _such_as(part, "Change it")
    return Fault(path=path, message=f"{message[:1].upper()}{message[1:]}.", suggestion=suggestion)


def _place(loc: Sequence[str | int]) -> list[str | int]:
    """The path in the document, without the names of union members that Pydantic tried."""
    parts: list[str | int] = []
    for number, part in enumerate(loc):
        before = loc[number - 2 : number]
        if len(before) == 2 and before[0] in ("conditions", "steps") and isinstance(before[1], int):
            continue
        parts.append(part)
    return parts


def _part(loc: Sequence[str | int]) -> type[Part]:
    """The model of the nearest enclosing part of a path."""
    if "parameters" in loc:
        return Parameter
    names = [str(part) for part in loc if part in _PARTS and isinstance(part, str)]
    chosen = [name for name in names if name in _TAGS and "conditions" in loc]
    if "steps" in loc:
        return Regex
    if "output" in loc and names[-1] in ("left", "right"):
        return Chosen
    if chosen:
        return _PARTS[chosen[-1]]
    return _PARTS[names[-1] if names else ""]


def _such_as(part: type[Part], do: str) -> str:
    example = _EXAMPLES.get(part)
    return f"{do}. For example: {example}" if example else f"{do}; the guide to recipes shows how."
