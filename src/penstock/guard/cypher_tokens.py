"""Cypher as tokens: strings, quoted names and both kinds of comment are understood, nothing else
is.

What two lexers could read differently is refused, not guessed: an escape that not every engine
knows, a backtick inside a quoted name, control characters, letters outside ASCII in a bare word
that is no name in Unicode. Comments become spaces, so that positions in the engine's messages stay
right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from penstock.guard.errors import CypherTooLarge, CypherUnreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind: TypeAlias = Literal["word", "name", "string", "number", "parameter", "sign"]

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<comment>//[^\n\r]*|/\*(?:[^*]++|\*(?!/))*+\*/)
    |(?P<string>'(?:[^'\\]++|\\['"\\bfnrt])*+'|"(?:[^"\\]++|\\['"\\bfnrt])*+")
    |(?P<name>`[^`]+`(?!`))
    |(?P<parameter>\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+))
    |(?P<number>(?:[0-9]+\.[0-9]+|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?(?![A-Za-z_]))
    |(?P<word>[^\W\d]\w*)
    |(?P<sign><>|<=|>=|=~|->|<-|\.\.|/(?![*/])|[-+*%^=<>().,:;\[\]{}|&!@])""",
    re.VERBOSE,
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ufeff\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CypherLimits:
    """What an engine can plan in seconds: nobody can stop it while it does. Each CASE inside
    another doubles it, and of relationships (`steps`) it weighs all orders."""

    length: int = 100_000
    tokens: int = 5_000
    depth: int = 48
    cases: int = 12
    steps: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    kind: Kind
    text: str
    at: int

    @property
    def upper(self) -> str:
        """The keyword it may be; a quoted name, a string and a number are none."""
        return self.text.upper() if self.kind == "word" else ""


def read(text: str, limits: CypherLimits) -> tuple[list[Token], str]:
    """The tokens, and the text with spaces in place of comments."""
    if len(text) > limits.length:
        raise CypherTooLarge(f"The query has {len(text)} characters; {limits.length} is the most.")
    if found := _CONTROL.search(text):
        raise _unreadable(text, found.start(), f"the character U+{ord(found[0]):04X}")
    clean = list(text)
    tokens = []
    for match in _matches(text):
        if match.lastgroup == "comment":
            clean[match.start() : match.end()] = [c if c in "\r\n" else " " for c in match[0]]
        elif match.lastgroup != "space":
            tokens.append(_token(match, text))
    if len(tokens) > limits.tokens:
        raise CypherTooLarge(
            f"The query has {len(tokens)} words and signs; {limits.tokens} is the most."
        )
    return tokens, "".join(clean)


def _matches(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unreadable(text, at, _what(text[at]))
        yield match
        at = match.end()


def _token(match: re.Match[str], text: str) -> Token:
    word = match[0]
    kinds: dict[str, Kind] = {
        "word": "word",
        "name": "name",
        "string": "string",
        "number": "number",
        "parameter": "parameter",
        "sign": "sign",
    }
    kind = kinds[match.lastgroup or ""]
    # Other scripts' letters may fold to ASCII when an engine compares keywords without case.
    if kind == "word" and not word.isascii() and (word.upper().isascii() or word.lower().isascii()):
        raise _unreadable(text, match.start(), f"the word {word[:40]!r}")
    return Token(kind=kind, text=word, at=match.start())


def _what(character: str) -> str:
    match character:
        case "'" | '"':
            return "a string that does not end, or an escape in it that is not one of \\\\ \\' \\\" \\b \\f \\n \\r \\t"
        case "`":
            return "a quoted name that does not end, or a backtick in one"
        case "/":
            return "a comment that does not end"
        case other:
            return f"the character {other!r}"


def _unreadable(text: str, at: int, what: str) -> CypherUnreadable:
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return CypherUnreadable(
        f"Line {line}, column {column}: {what} cannot be read.", line=line, column=column
    )
