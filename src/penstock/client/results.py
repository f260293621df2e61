"""The result of a query: typed columns, shown as a table and converted to data frames.

Values are the engine's: a node is a dict with `_id`, `_label` and its properties, an edge one with
`_id`, `_type`, `_src` and `_dst`. What needs another package says which one.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from penstock.client.frames import arrow, igraph_of, needed, typed
from penstock.client.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import igraph
    import networkx
    import pandas
    import polars
    import pyarrow
    from rich.console import Group

    from penstock.client.graph_shapes import Cell, Element
    from penstock.widget.contract import View
    from penstock.widget.expansion import Neighbors

SHOWN_ROWS = 20
LONGEST_CELL = 80


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QueryResult:
    """`rows` are lists in the order of `columns`; iterate for dicts."""

    columns: tuple[str, ...]
    column_types: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    execution_time_ms: int = 0
    truncated: bool = False
    neighbors: Neighbors | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Element]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def __getitem__(self, index: int) -> Element:
        return dict(zip(self.columns, self.rows[index], strict=True))

    def scalar(self) -> Cell:
        """The one value of a result of one row and one column."""
        if len(self.rows) != 1 or len(self.columns) != 1:
            raise ValueError(
                f"The result has {len(self.rows)} rows of {len(self.columns)} columns, not one "
                "value."
            )
        return self.rows[0][0]

    def column(self, name: str) -> list[Cell]:
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def to_dicts(self) -> list[Element]:
        return list(self)

    def to_pandas(self) -> pandas.DataFrame:
        frame: pandas.DataFrame = needed("pandas").DataFrame(
            self._typed(), columns=list(self.columns)
        )
        return frame

    def to_polars(self) -> polars.DataFrame:
        frame: polars.DataFrame = needed("polars").DataFrame(self._typed(), strict=False)
        return frame

    def to_arrow(self) -> pyarrow.Table:
        kinds = zip(self.columns, self.column_types, strict=True)
        return arrow({name: (kind, self.column(name)) for name, kind in kinds})

    def to_parquet(self, path: str | Path) -> None:
        needed("pyarrow.parquet").write_table(self.to_arrow(), path)

    def nodes(self) -> dict[str, Element]:
        """Every node that the result holds, alone, in lists or in paths, by its id."""
        return {element["_id"]: element for element in _elements(self.rows) if "_label" in element}

    def edges(self) -> dict[str, Element]:
        return {
            element["_id"]: element
            for element in _elements(self.rows)
            if "_type" in element and "_src" in element
        }

    def to_networkx(self) -> networkx.MultiDiGraph[str]:
        """The result's nodes and edges as a graph; parallel edges are keyed by their ids."""
        graph: networkx.MultiDiGraph[str] = needed("networkx").MultiDiGraph()
        for key, node in self.nodes().items():
            graph.add_node(key, **node)
        for key, edge in self.edges().items():
            graph.add_edge(edge["_src"], edge["_dst"], key=key, **edge)
        return graph

    def to_igraph(self) -> igraph.Graph:
        """The same as an `igraph.Graph`: a vertex's `name` is its id, its caption its `label`."""
        return igraph_of(self.nodes(), self.edges())

    def _typed(self) -> dict[str, list[Cell]]:
        kinds = zip(self.columns, self.column_types, strict=True)
        return {name: typed(kind, self.column(name)) for name, kind in kinds}

    def show(
        self,
        *,
        colour_by: str | None = None,
        size_by: str | None = None,
        caption: str | None = None,
    ) -> None:
        """Draw it: in a notebook as a graph where the result has nodes, else as a table."""
        from penstock.client.notebook_display import show

        show(self, colour_by=colour_by, size_by=size_by, caption=caption)

    def view(
        self,
        *,
        colour_by: str | None = None,
        size_by: str | None = None,
        caption: str | None = None,
        height: int = 520,
        expand_cap: int = 25,
    ) -> View:
        """The graph of it as a widget, whose `selection` follows the reader; needs `pip install
        'penstock[widget]'`.

        A double click brings a node's neighbors from the graph that was asked, `expand_cap` at
        once.
        """
        needed("anywidget")
        from penstock.widget.view import GraphView

        return GraphView(
            self,
            caption=caption,
            colour_by=colour_by,
            size_by=size_by,
            height=height,
            expand=self.neighbors,
            expand_cap=expand_cap,
        )

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table()
        for name, kind in zip(self.columns, self.column_types, strict=True):
            table.add_column(Text(printable(name)), justify="right" if kind in _NUMBERS else "left")
        for row in self.rows[:SHOWN_ROWS]:
            table.add_row(*(Text(_short(value)) for value in row))
        return Group(table, Text(self._caption(), style="dim"))

    def __repr__(self) -> str:
        return (
            f"<QueryResult {len(self.rows)} × {len(self.columns)}: "
            f"{printable(', '.join(self.columns))}>"
        )

    def _repr_html_(self) -> str:
        head = "".join(
            f"<th title='{html.escape(kind, quote=True)}'>{html.escape(printable(name))}</th>"
            for name, kind in zip(self.columns, self.column_types, strict=True)
        )
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_short(value))}</td>" for value in row) + "</tr>"
            for row in self.rows[:SHOWN_ROWS]
        )
        caption = html.escape(self._caption())
        return (
            f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )

    def _caption(self) -> str:
        shown = "" if len(self.rows) <= SHOWN_ROWS else f", the first {SHOWN_ROWS} shown"
        cut = ", cut at the row limit" if self.truncated else ""
        return f"{len(self.rows):,} rows in {self.execution_time_ms} ms{shown}{cut}"


_NUMBERS = {"INT64", "INT32", "INT16", "INT8", "DOUBLE", "FLOAT"}


def _short(value: object) -> str:
    text = printable(_text(value))
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"


def _text(value: object) -> str:
    if isinstance(value, dict) and "_label" in value:
        return f"({value['_id']})"
    if isinstance(value, dict) and "_type" in value and "_src" in value:
        return f"[{value['_src']} -{value['_type']}→ {value['_dst']}]"
    if isinstance(value, date):
        return value.isoformat()
    return "" if value is None else str(value)


def _elements(value: object) -> Iterator[Element]:
    if isinstance(value, dict):
        if "_id" in value:
            yield value
        for inner in value.values():
            yield from _elements(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _elements(inner)
