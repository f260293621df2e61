"""Read-only Cypher: checks that a text is one statement with listed clauses only.

The walk tracks one fact of the grammar: whether a value has just ended. After a value, a bare word
can only be an operator (AND, IN, AS …) or begin a clause, so there it must be on the list. Where a
value is expected, the same word is a variable, a function, a property or a label, and no engine
parses a clause from it: `n.set`, `:CREATE` and `AS load` pass, `RETURN n SET …` does not. A clause
that is not listed is always refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.guard.cypher_tokens import CypherLimits, Token, read
from penstock.guard.errors import CypherRefused, CypherTooLarge, CypherUnreadable

_BEGIN = frozenset({"MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL"})
_CLAUSES = _BEGIN | {"WHERE", "ORDER", "SKIP", "LIMIT", "UNION", "YIELD"}
_INSIDE = frozenset({"WHERE", "ALL", "SHORTEST", "WSHORTEST", "TRAIL", "ACYCLIC", "WALK"})
_INFIX = frozenset(
    {"AND", "OR", "XOR", "IN", "IS", "STARTS", "ENDS", "CONTAINS", "AS", "WHEN", "THEN", "ELSE"}
)
_PREFIX = frozenset({"NOT", "DISTINCT", "CASE"})
_SUFFIX = frozenset({"ASC", "ASCENDING", "DESC", "DESCENDING", "END"})
_SUBQUERY = frozenset({"EXISTS", "COUNT"})
_OPENING = {"(": ")", "[": "]", "{": "}"}
_PLAN = frozenset({"EXPLAIN", "PROFILE"})
_STATEFUL = frozenset({"NEXTVAL", "CURRVAL", "SETSEED"})
PROCEDURES = frozenset(
    """DB_VERSION SHOW_CONNECTION SHOW_FUNCTIONS SHOW_INDEXES SHOW_TABLES TABLE_INFO DB.LABELS
    DB.PROPERTYKEYS DB.RELATIONSHIPTYPES DB.INDEXES ALGO.BFS ALGO.PAGERANK ALGO.WCC
    ALGO.LABELPROPAGATION ALGO.BETWEENNESS ALGO.SPPATHS ALGO.SSPATHS""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CypherQuery:
    """A checked query: `text` is the statement without comments, `parameters` the parameter names
    it uses, `open_ended` whether a LIMIT could be added at its end."""

    text: str
    parameters: frozenset[str]
    open_ended: bool


def check_cypher(text: str, *, limits: CypherLimits | None = None) -> CypherQuery:
    """The statement if it only reads; raises `CypherRefused` with the word that is not allowed."""
    limits = limits or CypherLimits()
    tokens, clean = read(text, limits)
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    if not tokens:
        raise CypherUnreadable("The query is empty.")
    _count_steps(tokens, limits)
    is_plan = tokens[0].upper in _PLAN
    clauses = _Walk(tokens[is_plan:], limits).statement()
    return CypherQuery(
        text=clean.rstrip("; \t\r\n"),
        parameters=frozenset(token.text[1:] for token in tokens if token.kind == "parameter"),
        open_ended=not is_plan and _is_open_ended(clauses),
    )


def _count_steps(tokens: list[Token], limits: CypherLimits) -> None:
    """Limit the relationships in patterns between two WITHs: an engine plans them together, and
    planning cannot be interrupted."""
    steps = 0
    for before, token, after in zip([_END, *tokens], tokens, [*tokens[1:], _END], strict=False):
        if token.upper == "WITH" and before.upper not in ("STARTS", "ENDS"):
            steps = 0
        bare = before.text == ")" and after.text in ("-", "->")
        steps += token.text in ("-", "<-") and (after.text == "[" or bare)
        if steps > limits.steps:
            raise CypherTooLarge(
                f"There are more than {limits.steps} relationships in one pattern.",
                hint="Split it with a WITH, or use a path of variable length.",
            )


def _is_open_ended(clauses: list[str]) -> bool:
    """Whether the statement ends with a single RETURN without LIMIT."""
    if "UNION" in clauses or "RETURN" not in clauses:
        return False
    last = len(clauses) - clauses[::-1].index("RETURN")
    return "LIMIT" not in clauses[last:]


class _Walk:
    def __init__(self, tokens: list[Token], limits: CypherLimits) -> None:
        self._tokens = tokens
        self._limits = limits
        self._at = 0
        self._cases = 0
        self._top: list[str] = []

    def statement(self) -> list[str]:
        """The clauses outside all brackets, in their order."""
        self._clauses(depth=0, closing="")
        return self._top

    def _clauses(self, *, depth: int, closing: str) -> None:
        """Read from a clause's first word to the end, or to the closing bracket of a subquery."""
        self._clause(self._next(), depth)
        self._values(depth=depth, closing=closing, clauses=True)

    def _clause(self, token: Token, depth: int) -> None:
        if token.upper not in _BEGIN:
            raise _refused(token, "does not begin a read-only clause")
        self._rest_of_clause(token, depth)

    def _rest_of_clause(self, token: Token, depth: int) -> None:
        if depth == 0:
            self._top.append(token.upper)
        match token.upper:
            case "OPTIONAL":
                self._expect("MATCH")
            case "ORDER":
                self._expect("BY")
            case "CALL":
                self._procedure()
            case "UNION":
                if self._peek().upper == "ALL":
                    self._next()
                self._clause(self._next(), depth)

    def _procedure(self) -> None:
        first = self._next()
        name = first.upper
        while self._peek().text == ".":
            self._next()
            name += f".{self._next().upper}"
        if name not in PROCEDURES or self._peek().text != "(":
            raise _refused(first, "cannot be called")

    def _values(self, *, depth: int, closing: str, clauses: bool) -> None:
        """Read values until `closing`; `ended` tells whether a value has just ended."""
        ended = False
        before = ""
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if closing and token.text == closing and token.kind == "sign":
                return
            self._at += 1
            ended = self._step(token, ended, before, depth, clauses=clauses)
            before = token.upper or token.text
        if closing:
            raise CypherUnreadable(f"A bracket is not closed: {closing} is missing.")

    def _step(self, token: Token, ended: bool, before: str, depth: int, *, clauses: bool) -> bool:
        if token.kind == "sign":
            return self._sign(token, ended, before, depth)
        if token.kind != "word" or before in (".", "AS"):
            return True
        if ended:
            return self._after_value(token, depth, clauses=clauses)
        return self._as_value(token, before)

    def _sign(self, token: Token, ended: bool, before: str, depth: int) -> bool:
        if token.text in _OPENING:
            self._bracket(token, before, depth + 1)
            return True
        if token.text in (")", "]", "}"):
            raise CypherUnreadable(f"There is a {token.text} without an opening bracket.")
        if token.text == ";":
            raise _refused(token, "begins a second statement")
        # The star of RETURN * is a value, the star of 2 * 3 expects one.
        return token.text == "*" and not ended

    def _bracket(self, token: Token, before: str, depth: int) -> None:
        if depth > self._limits.depth:
            raise CypherTooLarge(f"Brackets are nested deeper than {self._limits.depth}.")
        closing = _OPENING[token.text]
        if token.text == "{" and before in _SUBQUERY:
            self._clauses(depth=depth, closing=closing)
        else:
            self._values(depth=depth, closing=closing, clauses=False)
        self._next()

    def _after_value(self, token: Token, depth: int, *, clauses: bool) -> bool:
        word = token.upper
        if word in _INFIX:
            return self._infix(word)
        if word in _SUFFIX:
            self._cases -= word == "END" and self._cases > 0
            return True
        if clauses and word in _CLAUSES:
            self._rest_of_clause(token, depth)
            return False
        if not clauses and word in _INSIDE:
            return word != "WHERE"
        if word in _CLAUSES:
            raise CypherUnreadable(f"{word} is inside a bracket; check for an unclosed one.")
        raise _refused(token, "is not allowed in a read-only query")

    def _infix(self, word: str) -> bool:
        """Whether a value has ended after the operator: IS NULL ends one, AND expects one."""
        if word in ("STARTS", "ENDS"):
            self._expect("WITH")
        if word == "IS":
            if self._peek().upper == "NOT":
                self._next()
            self._expect("NULL")
        return word == "IS"

    def _as_value(self, token: Token, before: str) -> bool:
        word = token.upper
        if word in _PREFIX or (before, word) in (("CASE", "WHEN"), ("|", "WHERE")):
            # Where an engine allows these words as variables, a clause could follow.
            if self._peek().upper in _FORBIDDEN:
                raise _refused(self._peek(), "is not allowed in a read-only query")
            self._cases += word == "CASE"
            if self._cases > self._limits.cases:
                raise CypherTooLarge(
                    f"CASE expressions are nested more than {self._limits.cases} times."
                )
            return False
        if word in _STATEFUL and self._peek().text == "(":
            raise _refused(token, "changes state that later queries see")
        return True

    def _expect(self, word: str) -> None:
        token = self._next()
        if token.upper != word:
            raise _refused(token, f"is used where {word} is expected")

    def _next(self) -> Token:
        if self._at >= len(self._tokens):
            raise CypherUnreadable("The query is incomplete.")
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self) -> Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END


_END = Token(kind="sign", text="", at=0)
_FORBIDDEN = frozenset(
    """ALTER ANALYZE ATTACH BEGIN CALL CHECKPOINT COMMENT COMMIT COPY CREATE DELETE DETACH DROP
    EXPORT FOREACH IMPORT INSTALL LOAD MERGE REMOVE ROLLBACK SET UNINSTALL UPDATE USE""".split()  # noqa: SIM905
)


def _refused(token: Token, why: str) -> CypherRefused:
    return CypherRefused(
        f"{token.text[:80]} {why}.",
        hint="A query may use MATCH, OPTIONAL MATCH, WHERE, WITH, UNWIND, RETURN, ORDER BY, SKIP,"
        " LIMIT, UNION and CALL of a listed procedure. Quote names that are keywords in backticks.",
        word=token.text[:80],
        position=token.at,
    )
