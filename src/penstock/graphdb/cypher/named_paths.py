"""Names the paths of a statement, so that FalkorDB counts every match.

FalkorDB multiplies matrices for relationships without a variable, which yields pairs of nodes:
parallel relationships, and nodes between without a variable, become one match instead of several.
`(a)-[:R*2..2]->(b)` and patterns of one MATCH that share a node are such products too. A named path
contains every relationship on it, so each pattern gets a name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.graphdb.cypher.patterns import Patterns, with_inserted
from penstock.graphdb.errors import CypherError

if TYPE_CHECKING:
    from collections.abc import Set


def with_named_paths(text: str) -> tuple[str, Set[str]]:
    """The statement with a name for each path that has relationships, and these names. They appear
    as columns of `RETURN *`."""
    patterns = Patterns(text)
    prefix = "_path"
    while prefix in text:
        prefix += "_"
    starts = [
        path.nodes[0].at - 1
        for match in patterns.matches
        for path in match.paths
        if len(path.nodes) > 1 and not path.has_name
    ]
    if starts and patterns.compares_all:
        raise CypherError(
            "A * in a projection with DISTINCT, an aggregate or UNION depends on the names of all"
            " paths.",
            hint="Replace the * by the names of the columns.",
        )
    names = {start: f"{prefix}{number}" for number, start in enumerate(starts)}
    return with_inserted(text, {at: f"{name} = " for at, name in names.items()}), set(
        names.values()
    )
