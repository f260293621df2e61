"""The regular expressions of recipes: the part of the syntax that RE2 (DuckDB) and Rust's regex
(DataFusion) read alike.

    group_count(r"^INV-(\\d+)$")    1
    group_count(r"a*+")            ValueError, which says what to write instead

A pattern is parsed here before any engine sees it. Whatever this grammar does not have is refused,
for one engine would refuse it or read it in another way:

    pattern      ["(?i)"] alternatives
    alternatives sequence {"|" sequence}
    sequence     {atom [quantifier]}
    atom         character | "." | "^" | "$" | escape | class | "(" ["?:"] alternatives ")"
    quantifier   ("*" | "+" | "?" | "{n}" | "{n,}" | "{n,m}") ["?"]
    escape       \\d \\D \\s \\S \\w \\W \\b \\t \\n \\r \\f \\xHH \\x{H…} or \\ before a sign
    class        "[" ["^"] {character | escape | character "-" character} "]"
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MOST_REPEATS = 1000
_MOST_DEPTH = 50
_SIGNS = frozenset(r".^$|?*+()[]{}\/-&~#'\"%@!,:;=` _")
"""What may follow a backslash and is then itself. Rust reads \\< and \\> as edges of words."""
_CLASSES = frozenset("dDsSwW")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")
_COUNT = re.compile(r"\{([0-9]{1,4})(,([0-9]{1,4})?)?\}")
_SETS = ("&&", "--", "~~")
_ASCII = 0x80


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """`size` is about how many states an engine makes of it; `empty` says that it may match
    nothing, `edge` that it always does."""

    size: int
    empty: bool = False
    edge: bool = False


def group_count(pattern: str) -> int:
    """How many groups a pattern has; ValueError where it is none of ours."""
    parser = _Parser(pattern)
    parser.whole()
    return parser.groups


def check_replacement(pattern: str, replacement: str) -> None:
    """ValueError where engines would not put the same in place of a match."""
    if "$" in replacement or re.search(r"\\(?![1-9])", replacement):
        raise ValueError(r"in replace a group is \1 to \9; $ and other backslashes are refused")
    if (number := re.search(r"\\[1-9][0-9]", replacement)) is not None:
        raise ValueError(f"in replace a digit after a group, as in {number[0]}, is refused")
    groups = group_count(pattern)
    most = max((int(digit) for digit in re.findall(r"\\([1-9])", replacement)), default=0)
    if most > groups:
        raise ValueError(f"replace names group {most}, which the regex does not have")


@dataclass(slots=True)
class _Parser:
    pattern: str
    at: int = 0
    groups: int = 0
    depth: int = 0
    ignores_case: bool = field(init=False)

    def __post_init__(self) -> None:
        self.ignores_case = self.pattern.startswith("(?i)")
        self.at = len("(?i)") if self.ignores_case else 0

    def whole(self) -> None:
        self._alternatives()
        if self.at < len(self.pattern):
            raise self._refused(")", r"a bracket that nothing opened; write \)")

    def _alternatives(self) -> _Piece:
        pieces = [self._sequence()]
        while self._take("|"):
            pieces.append(self._sequence())
        size = sum(piece.size for piece in pieces) + 1
        return _Piece(size=size, empty=any(piece.empty for piece in pieces))

    def _sequence(self) -> _Piece:
        size, empty = 0, True
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            piece = self._quantified()
            size, empty = size + piece.size, empty and piece.empty
        return _Piece(size=self._bounded(size), empty=empty)

    def _quantified(self) -> _Piece:
        start = self.at
        piece = self._atom()
        ended = self.at
        least, most = self._quantifier()
        if self.at == ended:
            return piece
        if piece.edge or piece.empty:
            what = self.pattern[start : self.at]
            raise self._refused(what, "repeats what may match nothing; repeat something else")
        if self.pattern[self.at : self.at + 1] in ("*", "+", "?", "{"):
            raise self._refused(self.pattern[start : self.at + 1], "has two quantifiers; use one")
        return _Piece(size=self._bounded(piece.size * max(least, most, 1)), empty=least == 0)

    def _quantifier(self) -> tuple[int, int]:
        """The least and the most times; of no end the most is the least."""
        sign = self.pattern[self.at : self.at + 1]
        if sign == "{":
            times = self._counts()
        elif sign in ("*", "+", "?") and sign:
            self.at += 1
            times = {"*": (0, 0), "+": (1, 2), "?": (0, 1)}[sign]
        else:
            return 1, 1
        self._take("?")
        return times

    def _counts(self) -> tuple[int, int]:
        count = _COUNT.match(self.pattern, self.at)
        if count is None:
            raise self._refused("{", r"no count such as {2}, {2,} or {2,5}; for the sign write \{")
        least = int(count[1])
        most = least if count[3] is None else int(count[3])
        if least > most or most > MOST_REPEATS or most == 0:
            raise self._refused(count[0], f"must count up, from 1 to {MOST_REPEATS} at most")
        self.at = count.end()
        # {1} is the piece itself, {1,} is not.
        return (least, most + 1) if count[2] and count[3] is None else (least, most)

    def _atom(self) -> _Piece:
        sign = self.pattern[self.at]
        self.at += 1
        match sign:
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escape()
            case "^" | "$":
                return _Piece(size=1, empty=True, edge=True)
            case "*" | "+" | "?" | "{" | "}" | "]":
                raise self._refused(sign, rf"has nothing before it; for the sign write \{sign}")
        self._check_sign(sign)
        return _Piece(size=1)

    def _group(self) -> _Piece:
        if self.pattern.startswith("?:", self.at):
            self.at += 2
        elif self.pattern.startswith("?", self.at):
            what = self.pattern[self.at - 1 : self.at + 3]
            raise self._refused(
                what,
                "is no group of every engine; use (…), (?:…), or (?i) at the very beginning",
            )
        else:
            self.groups += 1
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise ValueError(f"brackets are more than {_MOST_DEPTH} deep in each other")
        piece = self._alternatives()
        self.depth -= 1
        if not self._take(")"):
            raise self._refused("(", r"a bracket that is never closed; for the sign write \(")
        return piece

    def _escape(self) -> _Piece:
        if self.pattern.startswith("b", self.at):
            self.at += 1
            return _Piece(size=1, empty=True, edge=True)
        if self.pattern[self.at : self.at + 1] in _CLASSES and self.at < len(self.pattern):
            self.at += 1
            return _Piece(size=2)
        self._check_sign(self._escaped())
        return _Piece(size=1)

    def _escaped(self) -> str:
        """The sign that an escape is, after its backslash."""
        sign = self.pattern[self.at : self.at + 1]
        if (code := _HEX.match(self.pattern, self.at)) is not None:
            number = int(code[1] or code[2], 16)
            self.at = code.end()
            if number > 0x10FFFF or 0xD800 <= number < 0xE000:
                raise self._refused(rf"\{code[0]}", "is no character")
            return chr(number)
        if sign and (sign in _SIGNS or sign in _CONTROLS):
            self.at += 1
            return _CONTROLS.get(sign, sign)
        if sign in ("<", ">"):
            raise self._refused(rf"\{sign}", f"is an edge of a word to one engine; write {sign}")
        if sign.isdigit() and sign != "0":
            raise self._refused(rf"\{sign}", "refers to a group, which no engine here can")
        raise self._refused(rf"\{sign}", r"is not for every engine; a character is also \x{e9}")

    def _class(self) -> _Piece:
        start = self.at - 1
        self._take("^")
        items, size = 0, 0
        while not self._take("]"):
            if self.at >= len(self.pattern):
                raise self._refused("[", r"a class that is never closed; for the sign write \[")
            self._item(first=items == 0)
            items, size = items + 1, size + 1
        if not items:
            raise self._refused(self.pattern[start : self.at], r"a class of nothing; write \]")
        return _Piece(size=size)

    def _item(self, *, first: bool) -> None:
        if any(self.pattern.startswith(operator, self.at) for operator in _SETS):
            operator = self.pattern[self.at : self.at + 2]
            raise self._refused(operator, "combines classes in one engine; escape both signs")
        low = self._member(first=first)
        following = self.pattern[self.at + 1 : self.at + 2]
        if not self.pattern.startswith("-", self.at) or following in ("]", ""):
            return
        if any(self.pattern.startswith(operator, self.at) for operator in _SETS):
            raise self._refused("--", "combines classes in one engine; escape both signs")
        self.at += 1
        high = self._member(first=False)
        if low is None or high is None or ord(low) > ord(high):
            raise self._refused(
                f"{low or 'a class'}-{high or 'a class'}",
                r"is no range of characters; write \-",
            )

    def _member(self, *, first: bool) -> str | None:
        """A character of a class; None for a class inside it."""
        sign = self.pattern[self.at]
        self.at += 1
        if sign == "\\":
            if self.pattern[self.at : self.at + 1] in ("d", "s", "w"):
                self.at += 1
                return None
            sign = self._escaped()
        elif sign in ("[", "^") or (sign == "-" and not first and not self._ends_class()):
            raise self._refused(sign, rf"means something else in a class; write \{sign}")
        self._check_sign(sign)
        return sign

    def _ends_class(self) -> bool:
        return self.pattern.startswith("]", self.at)

    def _check_sign(self, sign: str) -> None:
        if self.ignores_case and ord(sign) >= _ASCII:
            raise self._refused(sign, "has no case that every engine knows; leave (?i) out")

    def _take(self, sign: str) -> bool:
        there = self.pattern.startswith(sign, self.at)
        self.at += len(sign) if there else 0
        return there

    def _bounded(self, size: int) -> int:
        if size > MOST_REPEATS:
            raise ValueError(f"it repeats too much: more than {MOST_REPEATS} characters in all")
        return size

    def _refused(self, what: str, why: str) -> ValueError:
        return ValueError(f"{what[:20]!r} before position {self.at + 1}: {why}")
