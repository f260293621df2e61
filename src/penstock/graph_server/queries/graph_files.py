"""Writes a small graph as JSON, Arrow, GraphML or GEXF: the answers of `POST /subgraph`.

Called in the engine's process; texts are cleaned of characters that XML does not have.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, TypeAlias
from xml.sax.saxutils import escape, quoteattr

import orjson
import pyarrow as pa

from penstock.graph_server.queries.results import (
    ARROW,
    JSON_ROWS,
    RESERVED,
    arrow_stream,
    dump,
    joined,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.graph_server.queries.results import Entity

    Writer: TypeAlias = Callable[[Sequence[Entity], Sequence[Entity], bool], bytes]

MEDIA = {
    "json": "application/json",
    "arrow": ARROW,
    "graphml": "application/graphml+xml",
    "gexf": "application/gexf+xml",
}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_json(nodes: Sequence[Entity], edges: Sequence[Entity], truncated: bool) -> bytes:
    body = {
        "nodes": _list(nodes),
        "edges": _list(edges),
        "node_count": len(nodes),
        "edge_count": len(edges),
    }
    return dump(body | {"truncated": truncated})


def _list(entities: Sequence[Entity]) -> orjson.Fragment:
    pieces = (entities[start : start + JSON_ROWS] for start in range(0, len(entities), JSON_ROWS))
    return orjson.Fragment(joined([dump(piece) for piece in pieces]))


def as_arrow(nodes: Sequence[Entity], edges: Sequence[Entity], truncated: bool) -> bytes:  # noqa: ARG001
    """One table: a row a node or edge, its properties as JSON."""
    both = [("node", node) for node in nodes] + [("edge", edge) for edge in edges]
    columns = {
        "kind": [kind for kind, _ in both],
        "id": [entity["_id"] for _, entity in both],
        "label": [entity.get("_label", entity.get("_type")) for _, entity in both],
        "source": [entity.get("_src") for _, entity in both],
        "target": [entity.get("_dst") for _, entity in both],
        "properties": [dump(_properties(entity)).decode() for _, entity in both],
    }
    batch = pa.RecordBatch.from_pydict(
        {name: pa.array(values, pa.string()) for name, values in columns.items()}
    )
    return b"".join(bytes(chunk) for chunk in arrow_stream(iter([batch])))


def as_graphml(nodes: Sequence[Entity], edges: Sequence[Entity], truncated: bool) -> bytes:  # noqa: ARG001
    out = io.StringIO()
    keys = {"node": _kinds(nodes), "edge": _kinds(edges)}
    out.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n<graphml '
        'xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    )
    for domain, kinds in keys.items():
        for number, (name, kind) in enumerate(kinds.items()):
            written = quoteattr(_xml(name))
            out.write(
                f'<key id="{domain[0]}{number}" for="{domain}" attr.name={written} '
                f'attr.type="{kind}"/>\n'
            )
    out.write('<graph edgedefault="directed">\n')
    for node in nodes:
        out.write(f"<node id={_id(node)}>{_data('n', keys['node'], node)}</node>\n")
    for edge in edges:
        ends = f"source={quoteattr(_xml(edge['_src']))} target={quoteattr(_xml(edge['_dst']))}"
        out.write(f"<edge id={_id(edge)} {ends}>{_data('e', keys['edge'], edge)}</edge>\n")
    out.write("</graph>\n</graphml>\n")
    return out.getvalue().encode()


def as_gexf(nodes: Sequence[Entity], edges: Sequence[Entity], truncated: bool) -> bytes:  # noqa: ARG001
    out = io.StringIO()
    keys = {"node": _kinds(nodes), "edge": _kinds(edges)}
    out.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n<gexf xmlns="http://gexf.net/1.3" version="1.3">\n'
    )
    out.write('<graph defaultedgetype="directed">\n')
    for domain, kinds in keys.items():
        attributes = "".join(
            f'<attribute id="{number}" title={quoteattr(_xml(name))} type="{kind}"/>'
            for number, (name, kind) in enumerate(kinds.items())
        )
        out.write(f'<attributes class="{domain}">{attributes}</attributes>\n')
    out.write("<nodes>\n")
    for node in nodes:
        out.write(f"<node id={_id(node)} label={_id(node)}>{_values(keys['node'], node)}</node>\n")
    out.write("</nodes>\n<edges>\n")
    for edge in edges:
        ends = f"source={quoteattr(_xml(edge['_src']))} target={quoteattr(_xml(edge['_dst']))}"
        out.write(f"<edge id={_id(edge)} {ends}>{_values(keys['edge'], edge)}</edge>\n")
    out.write("</edges>\n</graph>\n</gexf>\n")
    return out.getvalue().encode()


WRITERS: Mapping[str, Writer] = {
    "json": as_json,
    "arrow": as_arrow,
    "graphml": as_graphml,
    "gexf": as_gexf,
}


def _properties(entity: Entity) -> Entity:
    return {name: value for name, value in entity.items() if name not in RESERVED}


def _attributes(entity: Entity) -> Entity:
    """The label or type first, then the properties that are there."""
    kind = entity.get("_label", entity.get("_type"))
    return {"label": kind} | {
        name: value for name, value in _properties(entity).items() if value is not None
    }


def _kinds(entities: Sequence[Entity]) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for entity in entities:
        for name, value in _attributes(entity).items():
            kind = _kind(value)
            previous = kinds.setdefault(name, kind)
            if previous != kind:
                kinds[name] = "double" if {previous, kind} == {"long", "double"} else "string"
    return kinds


def _kind(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "long"
        case float():
            return "double"
    return "string"


def _data(prefix: str, kinds: Mapping[str, str], entity: Entity) -> str:
    numbers = {name: number for number, name in enumerate(kinds)}
    return "".join(
        f'<data key="{prefix}{numbers[name]}">{escape(_text(value))}</data>'
        for name, value in _attributes(entity).items()
    )


def _values(kinds: Mapping[str, str], entity: Entity) -> str:
    numbers = {name: number for number, name in enumerate(kinds)}
    written = "".join(
        f'<attvalue for="{numbers[name]}" value={quoteattr(_text(value))}/>'
        for name, value in _attributes(entity).items()
    )
    return f"<attvalues>{written}</attvalues>"


def _text(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _xml(value)
        case int() | float():
            return repr(value)
    return _xml(dump(value).decode().strip('"'))


def _xml(text: str) -> str:
    return _NOT_XML.sub("�", text)


def _id(entity: Entity) -> str:
    return quoteattr(_xml(entity["_id"]))
