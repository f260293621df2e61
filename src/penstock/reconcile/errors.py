"""Errors of the reconcile package.

InvalidInput
├── RecipeInvalid     RECIPE_INVALID       the recipe has faults; `faults` lists all of them
├── BadValue          RECONCILE_BAD_VALUE  text where a rule needs a number or a date
├── BadDecision       RECONCILE_DECISION   a manual decision whose key cannot be read
├── RuleFailed        RECONCILE_RULE       a rule or free SQL fails at a value
└── TooManyCandidates RECONCILE_TOO_MANY   the recipe multiplies rows
Internal
└── TotalsDiffer      RECONCILE_TOTALS     matched + unmatched differs from the rows read: a bug
Conflict
└── ThresholdPassed   RECONCILE_THRESHOLD  more is unmatched than the recipe allows
"""

from __future__ import annotations

from penstock.kit.errors import Conflict, Internal, InvalidInput


class RecipeInvalid(InvalidInput):
    """The recipe has faults; `details` has all of them, each with a suggestion."""

    code = "RECIPE_INVALID"


class BadValue(InvalidInput):
    """A value is not the number or date that a rule needs; the message names the side, the column,
    the value and its key."""

    code = "RECONCILE_BAD_VALUE"


class BadDecision(InvalidInput):
    """A manual decision has a key that does not fit the primary key of its side; the message has
    both keys."""

    code = "RECONCILE_DECISION"


class RuleFailed(InvalidInput):
    """A rule cannot be computed: a sum is too large, or free SQL fails at a value."""

    code = "RECONCILE_RULE"


class TooManyCandidates(InvalidInput):
    """A rule would multiply rows; add a narrower condition, or raise the limit named in the
    message."""

    code = "RECONCILE_TOO_MANY"


class TotalsDiffer(Internal):
    """Matched plus unmatched differs from the rows read: a bug in Penstock; no evidence was
    written."""

    code = "RECONCILE_TOTALS"


class ThresholdPassed(Conflict):
    """More is unmatched than the recipe allows; the evidence is kept."""

    code = "RECONCILE_THRESHOLD"
