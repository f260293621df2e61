"""The Cypher tokenizer: it handles strings, quoted names and both kinds of comment.

Text that two lexers could read differently is refused: an escape that not every engine supports, a
backtick inside a quoted name, control characters, non-ASCII letters in a bare word that fold to
ASCII. Comments become spaces, so that positions in the engine's messages stay correct.
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
    """Limits that let an engine plan a query in seconds: planning cannot be interrupted. Each
    nested CASE doubles the time, and the planner tries all orders of relationships (`steps`)."""

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
        """The word in upper case if the token may be a keyword, otherwise empty."""
        return self.text.upper() if self.kind == "word" else ""


def read(text: str, limits: CypherLimits) -> tuple[list[Token], str]:
    """The tokens, and the text with spaces in place of comments."""
    if len(text) > limits.length:
        raise CypherTooLarge(
            f"The query has {len(text)} characters; at most {limits.length} are allowed."
        )
    if control := _CONTROL.search(text):
        raise _unreadable(text, control.start(), f"the character U+{ord(control[0]):04X}")
    clean = list(text)
    tokens = []
    for match in _matches(text):
        if match.lastgroup == "comment":
            clean[match.start() : match.end()] = [c if c in "\r\n" else " " for c in match[0]]
        elif match.lastgroup != "space":
            tokens.append(_token(match, text))
    if len(tokens) > limits.tokens:
        raise CypherTooLarge(
            f"The query has {len(tokens)} tokens; at most {limits.tokens} are allowed."
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
    # Non-ASCII letters may fold to ASCII when an engine compares keywords without case.
    if kind == "word" and not word.isascii() and (word.upper().isascii() or word.lower().isascii()):
        raise _unreadable(text, match.start(), f"the word {word[:40]!r}")
    return Token(kind=kind, text=word, at=match.start())


def _what(character: str) -> str:
    match character:
        case "'" | '"':
            return (
                "an unterminated string, or an escape in it that is not one of"
                " \\\\ \\' \\\" \\b \\f \\n \\r \\t"
            )
        case "`":
            return "an unterminated quoted name, or a backtick in one"
        case "/":
            return "an unterminated comment"
        case other:
            return f"the character {other!r}"


def _unreadable(text: str, at: int, what: str) -> CypherUnreadable:
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return CypherUnreadable(
        f"Line {line}, column {column}: {what} cannot be parsed.", line=line, column=column
    )
