"""The demo's result as one HTML file: no request, no server, and nothing in it that was not
escaped."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from penstock.cli.demo.page import picture
from penstock.cli.demo.page.books import books_section
from penstock.cli.demo.page.lake import lake_section
from penstock.cli.demo.page.markup import section
from penstock.cli.demo.page.rings import rings_section
from penstock.cli.demo.page.worker_kills import storm_section

if TYPE_CHECKING:
    from penstock.cli.demo.result import Played


def written(played: Played) -> str:
    sections = (
        rings_section(played.rings),
        books_section(played.books),
        lake_section(played.lake),
        storm_section(played.storm),
        _next(played),
    )
    style = (files("penstock.cli.demo.page") / "page.css").read_text()
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{picture.head()}<title>Penstock demo</title><style>{style}</style>"
    )
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    body = (
        f"<h1>What Penstock just did on this machine</h1>"
        f'<p class="lead">Three workloads on one kernel of fenced jobs, in {played.seconds:.0f} '
        "seconds: a graph, a reconciliation, a table. Everything below was measured by that run."
        f"</p>{_tiles(played)}{''.join(sections)}"
        f"<footer>Written {when} by <code>penstock demo</code>.</footer>"
    )
    return (
        f'<!doctype html><html lang="en"><head>{head}</head>'
        f"<body><main>{body}</main>{picture.script()}</body></html>"
    )


def _tiles(played: Played) -> str:
    largest = max((ring.accounts for ring in played.rings.found), default=0)
    open_breaks = sum(len(side.breaks) for side in played.books.sides.values())
    before, after = played.lake.before.files, played.lake.after.files
    tiles = (
        ("rings", f"{len(played.rings.found)} rings", f"the largest has {largest} accounts"),
        (
            "books",
            f"{open_breaks:,} breaks",
            "tied to the cent" if played.books.good else "that do not tie",
        ),
        ("lake", f"{before} → {after}", "data files, the same rows"),
        (
            "storm",
            f"{played.storm.ended_once} of {len(played.storm.jobs)}",
            "jobs ended once, workers killed and frozen",
        ),
    )
    drawn = (
        f'<a class="tile" href="#{key}"><b>{escape(figure)}</b><span>{escape(text)}</span></a>'
        for key, figure, text in tiles
    )
    return f'<nav class="tiles">{"".join(drawn)}</nav>'


def _next(played: Played) -> str:
    commands = (
        "penstock up --detach                          # everything this page shows is in there",
        "penstock instance start 1                     # the bank as a graph, to ask in Cypher",
        (
            f"penstock run report {played.books.run_id} --to report.html      # the whole "
            "reconciliation"
        ),
        "penstock table health lake.shop.events        # how the table is now",
        "jupyter lab examples/notebooks                # the same on CSV files of your own",
    )
    lines = escape("\n".join(commands))
    return section(
        "next",
        "Now you",
        "The demo left its work in the home of penstock up.",
        f"<pre><code>{lines}</code></pre>",
    )
