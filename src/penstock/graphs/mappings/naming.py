"""Names for a graph out of names of tables and columns: such as the rules allow, and each given
once."""

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
_KEPT = ("ss", "us", "is")
_IRREGULAR = {
    "people": "person",
    "children": "child",
    "men": "man",
    "women": "woman",
    "series": "series",
    "data": "data",
}
_REFERENCE = re.compile(r"[_ ]?(id|key|code|no|nr|number|uuid|fk|ref)$", re.IGNORECASE)


class Given:
    """The names that were given so far; one that is taken, in whatever case, gets a number."""

    def __init__(self, *taken: str) -> None:
        self._taken = {name.lower() for name in taken}

    def give(self, name: str) -> str:
        found, number = name, 1
        while found.lower() in self._taken or found.lower() in RESERVED:
            suffix = f"_{number}"
            found, number = f"{name[: LONGEST - len(suffix)]}{suffix}", number + 1
        self._taken.add(found.lower())
        return found


def singular(word: str) -> str:
    """`customers` is `customer`, `order_lines` is `order_line`; a word that is no plural stays."""
    head, cut, last = word.rpartition("_")
    return head + cut + _one(last)


def _one(word: str) -> str:
    lower = word.lower()
    if lower in _IRREGULAR:
        return _IRREGULAR[lower]
    for ending, instead in _ENDINGS:
        if lower.endswith(ending) and len(word) > len(ending):
            return word[: -len(ending)] + instead
    return (
        word[:-1] if lower.endswith("s") and not lower.endswith(_KEPT) and len(word) > 1 else word
    )


def label(table: str) -> str:
    """`order_lines` is `OrderLine`; where that is a word of Cypher's, the plural stays."""
    one, many = _pascal(singular(table)), _pascal(table)
    return many if one.lower() in RESERVED and many.lower() not in RESERVED else one


def edge_type(text: str) -> str:
    name = _begun(_plain(text).upper(), "E")
    return f"{name}_EDGE" if name.lower() in RESERVED else name


def property_name(column: str) -> str:
    return _begun(_plain(column), "p")


def role(column: str) -> str:
    """What a reference is to its row: `billing_customer_id` is `billing_customer`."""
    return _REFERENCE.sub("", column) or column


def _pascal(text: str) -> str:
    words = [word for word in _plain(text).split("_") if word]
    return _begun("".join(word[0].upper() + word[1:] for word in words), "T")


def _plain(text: str) -> str:
    bare = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "_", bare).strip("_")


def _begun(name: str, letter: str) -> str:
    return (name if name[:1].isalpha() else f"{letter}_{name}".rstrip("_"))[:LONGEST]
