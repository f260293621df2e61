"""What reconciliation says no with.

InvalidInput ├── RecipeInvalid     RECIPE_INVALID      `faults` has every fault, with a suggestion
├── BadValue          RECONCILE_BAD_VALUE text where a number or a date is meant; says where ├──
BadDecision       RECONCILE_DECISION  a decision by hand whose key cannot be read ├── RuleFailed
RECONCILE_RULE      a rule or free SQL fails at a value └── TooManyCandidates RECONCILE_TOO_MANY
the recipe multiplies rows Internal └── TotalsDiffer      RECONCILE_TOTALS    matched + unmatched is
not what was read: our fault, never the data's Conflict └── ThresholdPassed   RECONCILE_THRESHOLD
"""

from __future__ import annotations

from penstock.kit.errors import Conflict, Internal, InvalidInput


class RecipeInvalid(InvalidInput):
    """The recipe has faults; `details` has all of them, each with a suggestion."""

    code = "RECIPE_INVALID"


class BadValue(InvalidInput):
    """A value is no number or date where a rule wants one; the message has the side, the column,
    the value and its key."""

    code = "RECONCILE_BAD_VALUE"


class BadDecision(InvalidInput):
    """A decision by hand names a key that the primary key of its side cannot have; the message has
    both keys."""

    code = "RECONCILE_DECISION"


class RuleFailed(InvalidInput):
    """A rule cannot be computed: a sum is too large, or free SQL fails at a value."""

    code = "RECONCILE_RULE"


class TooManyCandidates(InvalidInput):
    """A rule would multiply rows; give it a narrower condition, or raise the limit that the
    message names."""

    code = "RECONCILE_TOO_MANY"


class TotalsDiffer(Internal):
    """Matched plus unmatched is not what was read: a fault of ours, and no evidence was written."""

    code = "RECONCILE_TOTALS"


class ThresholdPassed(Conflict):
    """More is unmatched than the recipe allows; the evidence is kept."""

    code = "RECONCILE_THRESHOLD"
