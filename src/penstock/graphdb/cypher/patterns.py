"""A partial parser for the patterns of a Cypher statement, used to rewrite them.

It locates nodes, counts their relationships, and finds where each MATCH and its WHERE begin and
end.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.graphdb.cypher.text import COMMENT, QUOTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TOKEN = re.compile(
    rf"(?P<comment>{COMMENT})|(?P<quoted>{QUOTED})"
    r"""|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<word>[^\W\d]\w*)|\d[\w.]*|[^\s\w]""",
    re.DOTALL,
)
_BEFORE_NAMES = frozenset({".", ":", "$", "|", "AS"})
"""A word after one of these is a property, a label, a parameter or a column, never a keyword."""
_CLAUSES = frozenset(
    "MATCH OPTIONAL WITH RETURN UNWIND UNION CALL HINT ORDER SKIP LIMIT".split()  # noqa: SIM905
)
_TEXT_OPERATORS = frozenset({"STARTS", "ENDS"})
_BEFORE_NODES = frozenset({"MATCH", ",", "=", "-", ">"})
_NOT_SPLIT = frozenset({"OR", "XOR", "CASE"})
_AGGREGATES = frozenset(
    "COUNT SUM AVG MIN MAX COLLECT STDEV STDEVP PERCENTILEDISC PERCENTILECONT".split()  # noqa: SIM905
)
_MOST_TOGETHER = 2
"""With so many relationships no plan can extend in an order that loses rows."""


@dataclass(slots=True)
class Node:
    """A node of a pattern: the position `at` which its name is or would be, the name as written,
    the end of the node, and the number of its relationships there."""

    at: int
    name: str = ""
    end: int = 0
    degree: int = 0


@dataclass(slots=True)
class Path:
    """One of the comma-separated paths of a MATCH. `names` includes those of relationships; `comma`
    is the position of the comma before it."""

    comma: int | None = None
    has_name: bool = False
    nodes: list[Node] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Match:
    """A MATCH by positions in the text: `condition` is where its WHERE condition begins, `end`
    where the next clause begins. `follows` tells whether another MATCH directly precedes it."""

    depth: int
    start: int
    optional: bool
    follows: bool
    paths: list[Path] = field(default_factory=lambda: [Path()])
    condition: int | None = None
    end: int = 0

    @property
    def nodes(self) -> list[Node]:
        return [node for path in self.paths for node in path.nodes]


def with_inserted(text: str, inserted: Mapping[int, str]) -> str:
    """The text with pieces inserted at their positions; a piece at a comma replaces it."""
    pieces, end = [], 0
    for at in sorted(inserted):
        pieces += [text[end:at], inserted[at]]
        end = at + (text[at : at + 1] == ",")
    return "".join(pieces) + text[end:]


class Patterns:
    """The patterns of all MATCH clauses, including subqueries.

    `returns_all` tells whether a projection has every variable (`*`), `compares_all` whether its
    result depends on the set of variables: it groups by them, is DISTINCT, or is part of a UNION.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.matches: list[Match] = []
        self.returns_all = False
        self._groups_all = False
        self._has_union = False
        self._is_in_all = False
        self._open: list[Match] = []
        self._brackets: list[Node | None] = []
        self._before = ""
        self._closed: Node | None = None
        for token in _TOKEN.finditer(text):
            if token["comment"] is None:
                self._read(token)
        for match in self._open:
            match.end = len(text)

    @property
    def compares_all(self) -> bool:
        return self._groups_all or (self.returns_all and self._has_union)

    @property
    def could_branch(self) -> bool:
        """Whether two nodes are between relationships: a plan may extend from one of them after it
        has extended to another node."""
        degrees = self._degrees()
        nodes = [node for match in self.matches for node in match.nodes]
        named = sum(degree > 1 for name, degree in degrees.items() if name)
        return named + sum(node.degree > 1 for node in nodes if not node.name) > 1

    def missing_names(self) -> dict[int, str]:
        """Names for unnamed nodes between relationships, by position."""
        names: dict[int, str] = {}
        for match in self.matches:
            for node in match.nodes:
                if not node.name and node.degree > 1:
                    name = f"_between{len(names)}"
                    while name in self.text:
                        name += "_"
                    names[node.at] = name
        return names

    def conditions(self) -> dict[int, str]:
        """A condition that is always true for each node between relationships, by position."""
        degrees, inserted = self._degrees(), dict[int, str]()
        for match in self.matches:
            names = dict.fromkeys(n.name for n in match.nodes if n.name and degrees[n.name] > 1)
            if not names:
                continue
            condition = " AND ".join(f"id({name}) IS NOT NULL" for name in names)
            if match.condition is None:
                inserted[match.end] = f"\nWHERE {condition} "
            else:
                inserted[match.condition] = f" {condition} AND ("
                inserted[match.end] = "\n) "
        return inserted

    def parts(self) -> dict[int, str]:
        """Insertions that split the clauses into parts with few relationships each, by position.
        Each part gets the WHERE conditions on its own names."""
        inserted: dict[int, str] = {}
        for match in self.matches:
            if match.depth or match.optional:
                continue
            if match.follows:
                inserted[match.start] = "WITH * "
            for at, again in self._cuts(match):
                condition = self._condition_before(match, at)
                inserted[at] = f"{condition}\nWITH * MATCH {again}"
        return inserted

    def _cuts(self, match: Match) -> Iterator[tuple[int, str]]:
        """Where a clause can be split, and how the next part has to begin."""
        count = 0
        for path in match.paths:
            steps = len(path.nodes) - 1
            if path.comma is not None and count + steps > _MOST_TOGETHER:
                yield path.comma, ""
                count = 0
            if path.has_name:
                count += steps
                continue
            for node in path.nodes[:-1]:
                if count == _MOST_TOGETHER and node.name:
                    yield node.end, f"({node.name})"
                    count = 0
                count += 1

    def _condition_before(self, match: Match, at: int) -> str:
        """The conditions of a clause that use no name bound after a position."""
        if match.condition is None:
            return ""
        later = {node.name for node in match.nodes if node.at > at}
        earlier = {node.name for node in match.nodes if node.at < at}
        for path in match.paths:
            later |= path.names if path.nodes and path.nodes[-1].at > at else set()
        conjuncts = [c for c in self._conjuncts(match) if not _names(c) & (later - earlier)]
        return "\nWHERE " + " AND ".join(f"({c}\n)" for c in conjuncts) if conjuncts else ""

    def _conjuncts(self, match: Match) -> list[str]:
        """The operands of a condition's top-level ANDs; empty where it is more complex."""
        pieces, depth, begin = [], 0, match.condition or 0
        for token in _TOKEN.finditer(self.text, begin, match.end):
            depth += (token["open"] is not None) - (token["close"] is not None)
            word = token[0].upper()
            if token[0] == "{" or (depth == 0 and word in _NOT_SPLIT):
                return []
            if depth == 0 and word == "AND" and token["word"] is not None:
                pieces.append(self.text[begin : token.start()])
                begin = token.end()
        return [*pieces, self.text[begin : match.end]]

    def _degrees(self) -> Counter[str]:
        """The number of relationships by node name; unnamed nodes are counted together."""
        degrees = Counter[str]()
        for match in self.matches:
            for node in match.nodes:
                degrees[node.name] += node.degree
        return degrees

    def _read(self, token: re.Match[str]) -> None:
        sign, before, closed = token[0], self._before, self._closed
        word = "" if before in _BEFORE_NAMES or token["word"] is None else sign.upper()
        self._before, self._closed = word or sign, None
        is_after_match = self._end_clauses(token, word, before)
        self._read_projection(sign, word, before)
        match = self._open[-1] if self._open else None
        if word == "MATCH":
            self._begin(token, optional=before == "OPTIONAL", follows=is_after_match)
        elif word == "WHERE" and match is not None and match.depth == len(self._brackets):
            match.condition = token.end()
        elif token["open"] is not None:
            self._brackets.append(self._opened(token, match, before))
        elif token["close"] is not None:
            self._closed = self._brackets.pop() if self._brackets else None
            if self._closed is not None:
                self._closed.end = token.end()
        elif match is not None and match.condition is None:
            self._read_pattern(token, match, before, closed)

    def _read_projection(self, sign: str, word: str, before: str) -> None:
        self._has_union |= word == "UNION"
        if sign == "*" and before in ("WITH", "RETURN", "DISTINCT"):
            self.returns_all = self._is_in_all = True
            self._groups_all |= before == "DISTINCT"
        elif word in _CLAUSES:
            self._is_in_all = False
        elif self._is_in_all and sign == "(":
            self._groups_all |= before in _AGGREGATES

    def _read_pattern(
        self,
        token: re.Match[str],
        match: Match,
        before: str,
        closed: Node | None,
    ) -> None:
        sign, path = token[0], match.paths[-1]
        is_name = token["word"] is not None or token["quoted"] is not None
        if len(self._brackets) == match.depth and sign == ",":
            match.paths.append(Path(comma=token.start()))
        elif len(self._brackets) == match.depth and sign == "=":
            path.has_name = True
        elif closed is not None and sign in ("-", "<"):
            closed.degree += 1
        elif is_name and before in ("(", "["):
            path.names.add(sign)
            if before == "(" and (node := self._brackets[-1]) is not None:
                node.name = sign

    def _begin(self, token: re.Match[str], *, optional: bool, follows: bool) -> None:
        depth = len(self._brackets)
        self.matches.append(Match(depth, token.start(), optional, follows))
        self._open.append(self.matches[-1])

    def _end_clauses(self, token: re.Match[str], word: str, before: str) -> bool:
        """Whether a MATCH ends here."""
        depth, ended = len(self._brackets), False
        is_next = word in _CLAUSES and before not in _TEXT_OPERATORS
        while self._open and self._open[-1].depth == depth and (is_next or token["close"]):
            self._open.pop().end = token.start()
            ended = True
        return ended

    def _opened(self, token: re.Match[str], match: Match | None, before: str) -> Node | None:
        """The node that a bracket begins, or None."""
        is_pattern = match is not None and match.condition is None
        if match is None or not is_pattern or len(self._brackets) != match.depth:
            return None
        if token[0] != "(" or before not in _BEFORE_NODES:
            return None
        node = Node(token.end(), degree=int(before in ("-", ">")))
        match.paths[-1].nodes.append(node)
        return node


def _names(text: str) -> set[str]:
    return {token[0] for token in _TOKEN.finditer(text) if token["word"] or token["quoted"]}
