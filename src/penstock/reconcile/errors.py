"""What reconciliation says no with.

InvalidInput
├── RecipeInvalid     RECIPE_INVALID      `faults` has every fault, with a suggestion
├── BadValue          RECONCILE_BAD_VALUE text where a number or a date is meant; says where
└── TooManyCandidates RECONCILE_TOO_MANY  the recipe multiplies rows
Internal
└── TotalsDiffer      RECONCILE_TOTALS    matched + unmatched is not what was read: our fault, never the data's
Conflict
└── ThresholdPassed   RECONCILE_THRESHOLD
"""

from __future__ import annotations

from penstock.kit.errors import Conflict, Internal, InvalidInput


class RecipeInvalid(InvalidInput):
    """The recipe has faults; `details` has all of them, each with a suggestion."""

    code = "RECIPE_INVALID"


class BadValue(InvalidInput):
    """A value is no number or date where a rule wants one; the message has the column, the count and an example."""

    code = "RECONCILE_BAD_VALUE"


class TooManyCandidates(InvalidInput):
    """A rule would multiply rows; give it a narrower condition."""

    code = "RECONCILE_TOO_MANY"


class TotalsDiffer(Internal):
    """Matched plus unmatched is not what was read: a fault of ours, and no evidence was written."""

    code = "RECONCILE_TOTALS"


class ThresholdPassed(Conflict):
    """More is unmatched than the recipe allows; the evidence is kept."""

    code = "RECONCILE_THRESHOLD"
