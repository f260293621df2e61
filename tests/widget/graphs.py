"""Small graphs as an engine gives them."""

from __future__ import annotations

from typing import Any

from penstock.widget.drawing import Drawing

Element = dict[str, Any]


def person(key: object, **properties: Any) -> Element:
    return {"_id": f"Person:{key}", "_label": "Person", **properties}


def knows(number: int, source: object, target: object, **properties: Any) -> Element:
    return {
        "_id": f"KNOWS:{number}",
        "_type": "KNOWS",
        "_src": f"Person:{source}",
        "_dst": f"Person:{target}",
        **properties,
    }


def people(number: int) -> list[Element]:
    return [person(i, name=f"P{i}") for i in range(number)]


def ring(number: int) -> Drawing:
    edges = [knows(i, i, (i + 1) % number) for i in range(number)]
    return Drawing.from_elements(people(number), edges)
