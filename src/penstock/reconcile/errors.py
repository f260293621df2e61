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
    code = "RECIPE_INVALID"


class BadValue(InvalidInput):
    code = "RECONCILE_BAD_VALUE"


class TooManyCandidates(InvalidInput):
    code = "RECONCILE_TOO_MANY"


class TotalsDiffer(Internal):
    code = "RECONCILE_TOTALS"


class ThresholdPassed(Conflict):
    code = "RECONCILE_THRESHOLD"
