"""Names of labels, edge types and properties, derived from tables and columns: valid and unique."""

from __future__ import annotations

import re
import unicodedata

from penstock.graphs.mappings.rules import RESERVED

LONGEST = 64
_ENDINGS = (
    ("ies", "y"),
    ("lves", "lf"),
    ("sses", "ss"),
    ("shes", "sh"),
    ("ches", "ch"),
    ("xes", "x"),
    ("zzes", "zz"),
    ("uses", "us"),
)
_UNCHANGED_ENDINGS = ("ss", "us", "is")
_IRREGULAR = {
    "people": "person",
    "children": "child",
    "men": "man",
    "women": "woman",
    "series": "series",
    "data": "data",
}
_REFERENCE = re.compile(r"[_ ]?(id|key|code|no|nr|number|uuid|fk|ref)$", re.IGNORECASE)


class UniqueNames:
    """Makes names unique, ignoring case, by appending a number."""

    def __init__(self, *taken: str) -> None:
        self._taken = {name.lower() for name in taken}

    def add(self, name: str) -> str:
        unique, number = name, 1
        while unique.lower() in self._taken or unique.lower() in RESERVED:
            suffix = f"_{number}"
            unique, number = f"{name[: LONGEST - len(suffix)]}{suffix}", number + 1
        self._taken.add(unique.lower())
        return unique


def singular(word: str) -> str:
    """`customers` is `customer`, `order_lines` is `order_line`; other words stay unchanged."""
    head, cut, last = word.rpartition("_")
    return head + cut + _singular(last)


def _singular(word: str) -> str:
    lower = word.lower()
    if lower in _IRREGULAR:
        return _IRREGULAR[lower]
    for ending, instead in _ENDINGS:
        if lower.endswith(ending) and len(word) > len(ending):
            return word[: -len(ending)] + instead
    return (
        word[:-1]
        if lower.endswith("s") and not lower.endswith(_UNCHANGED_ENDINGS) and len(word) > 1
        else word
    )


def label(table: str) -> str:
    """`order_lines` is `OrderLine`; the plural stays where that is a reserved word."""
    one, many = _pascal(singular(table)), _pascal(table)
    return many if one.lower() in RESERVED and many.lower() not in RESERVED else one


def edge_type(text: str) -> str:
    name = _starting_with(_plain(text).upper(), "E")
    return f"{name}_EDGE" if name.lower() in RESERVED else name


def property_name(column: str) -> str:
    return _starting_with(_plain(column), "p")


def role(column: str) -> str:
    """The role of a reference: `billing_customer_id` is `billing_customer`."""
    return _REFERENCE.sub("", column) or column


def _pascal(text: str) -> str:
    words = [word for word in _plain(text).split("_") if word]
    return _starting_with("".join(word[0].upper() + word[1:] for word in words), "T")


def _plain(text: str) -> str:
    bare = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "_", bare).strip("_")


def _starting_with(name: str, letter: str) -> str:
    return (name if name[:1].isalpha() else f"{letter}_{name}".rstrip("_"))[:LONGEST]
