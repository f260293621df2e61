"""The HTML report of a run: one self-contained file, rendered from the manifest alone.

Called by the API for `GET /api/runs/{run_id}/report`. No I/O.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from penstock.reconcile.recipes.model import SIDES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from penstock.kit.json_value import JsonValue
    from penstock.reconcile.evidence.document import (
        FileEntry,
        Manifest,
        RuleEntry,
        TotalsEntry,
        WarningEntry,
    )
    from penstock.reconcile.recipes.model import SideName

    Totals = Mapping[SideName, TotalsEntry]

_STYLE = """
:root{color-scheme:light dark;--ink:#1b2733;--soft:#5b6b7a;--line:#d5dde5;
--paper:#fff;--good:#2c7a5b;--bad:#b4552d}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9fb0c0;--line:#33414e;--paper:#12181f;--good:#58b68d;
--bad:#e08a5f}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:60rem;margin:2rem auto;
padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}
p{color:var(--soft);margin:.25rem 0}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid var(--line)}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}code{font-size:.85em;word-break:break-all}
svg{width:100%;height:auto;display:block}svg text{fill:var(--ink);font:12px system-ui,sans-serif}
.good{fill:var(--good)}.bad{fill:var(--bad)}.ok{color:var(--good)}
.no{color:var(--bad);font-weight:600}
"""
_WIDTH, _LABEL, _ROW = 720, 190, 26
_SHOWN_DIGESTS = 5


def report(manifest: Manifest, failed: Mapping[str, JsonValue] | None = None) -> str:
    """`failed` is the threshold error of a run that failed although its evidence is complete."""
    recipe, totals = manifest["recipe"], manifest["totals"]
    title = f"{recipe['name']} · run {manifest['run'].get('run_id', '')}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{_facts(manifest)}</p>",
        *([f'<p class="no">{escape(str(failed["message"]))}</p>'] if failed else []),
        "<h2>Both sides</h2>",
        _stacks([(side, totals[side]["matched"], totals[side]["unmatched"]) for side in SIDES]),
        _sides(totals),
        "<h2>Rules</h2>",
        _rules(manifest["rules"]),
        "<h2>Why records are unmatched</h2>",
        *(_reasons(side, totals[side]["reasons"]) for side in SIDES),
        *_warnings(manifest["warnings"]),
        "<h2>What was read</h2>",
        _inputs(manifest["inputs"], totals),
        "<h2>Files</h2>",
        _files(manifest["files"]),
    ]
    body = "\n".join(parts)
    head = (
        '<meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width"><title>{escape(title)}</title>'
    )
    head = f"<head>{head}<style>{_STYLE}</style></head>"
    return f'<!doctype html><html lang="en">{head}<body><main>{body}</main></body></html>'


def _facts(manifest: Manifest) -> str:
    recipe = manifest["recipe"]
    version = "" if recipe["version"] is None else f", version {recipe['version']}"
    return (
        f"Engine {escape(manifest['engine'])}{version}. "
        f"Recipe <code>{escape(recipe['digest'][:16])}</code>,"
        f" evidence <code>{escape(manifest['evidence_sha256'][:16])}</code>."
    )


def _sides(totals: Totals) -> str:
    rows = []
    for side in SIDES:
        side_totals = totals[side]
        rows.append(
            [
                side,
                _n(side_totals["rows"]),
                _n(side_totals["matched"]),
                _n(side_totals["unmatched"]),
                '<span class="ok">ties</span>',
            ]
        )
        for currency, total in side_totals["amounts"]["total"].items():
            parts = [
                side_totals["amounts"][part].get(currency, "0") for part in ("matched", "unmatched")
            ]
            rows.append(
                [f"{side} amount {currency}", total, *parts, '<span class="ok">ties</span>']
            )
    return _table(["", "rows", "matched", "unmatched", "proof"], rows, raw={4})


def _rules(rules: Sequence[RuleEntry]) -> str:
    rows = [
        [
            r["name"],
            r["pattern"],
            _n(r["matches"]),
            _n(r["left"]),
            _n(r["right"]),
            _n(r["ambiguous"]),
            _money(r["amounts"]["left"]),
            _money(r["amounts"]["right"]),
        ]
        for r in rules
    ]
    head = ["rule", "pattern", "matches", "left", "right", "ambiguous"]
    head += ["left amount", "right amount"]
    return _bars([(r["name"], r["matches"]) for r in rules], "good") + _table(head, rows)


def _money(amounts: Mapping[str, str]) -> str:
    return ", ".join(f"{amount} {currency}".strip() for currency, amount in amounts.items())


def _inputs(inputs: Mapping[SideName, Mapping[str, JsonValue]], totals: Totals) -> str:
    rows = []
    for side in SIDES:
        source = inputs.get(side, {})
        read = next(
            (
                f"{name} {source[name]}"
                for name in ("table", "upload", "data_source_id")
                if name in source
            ),
            "",
        )
        sha256 = source.get("sha256")
        shown = sha256[:_SHOWN_DIGESTS] if isinstance(sha256, list) else ()
        digests = " ".join(str(digest)[:16] for digest in shown)
        rows.append([side, read, _n(totals[side]["rows"]), _n(totals[side]["null_keys"]), digests])
    return _table(["side", "from", "rows", "keys with nulls", "sha256"], rows)


def _reasons(side: str, reasons: Mapping[str, int]) -> str:
    if not reasons:
        return f"<p>{side}: nothing is unmatched.</p>"
    rows = [(name.replace("_", " "), count) for name, count in reasons.items()]
    return f"<p>{side}</p>{_bars(rows, 'bad')}"


def _warnings(warnings: Sequence[WarningEntry]) -> Iterable[str]:
    if warnings:
        yield "<h2>Warnings</h2>"
        yield _table(
            ["where", "what", "suggestion"],
            [[w["path"], w["message"], w["suggestion"]] for w in warnings],
        )


def _files(files: Sequence[FileEntry]) -> str:
    rows = [
        [f["name"], _n(f["rows"]), _n(f["size"]), f"<code>{escape(f['sha256'])}</code>"]
        for f in files
    ]
    return _table(["file", "rows", "bytes", "sha256"], rows, raw={3})


def _bars(values: Sequence[tuple[str, int]], kind: str) -> str:
    most = max((count for _, count in values), default=0) or 1
    available = _WIDTH - _LABEL - 90
    drawn = []
    for place, (name, count) in enumerate(values):
        y, width = place * _ROW, round(available * count / most, 1)
        drawn.append(
            _label(name, y) + _bar(_LABEL, y, width, kind) + _text(_LABEL + width + 6, y, _n(count))
        )
    return _svg(
        len(values), "".join(drawn), ", ".join(f"{name}: {count}" for name, count in values)
    )


def _stacks(values: Sequence[tuple[str, int, int]]) -> str:
    available = _WIDTH - _LABEL - 90
    drawn = []
    for place, (name, good, bad) in enumerate(values):
        y, whole = place * _ROW, (good + bad) or 1
        width = round(available * good / whole, 1)
        rest = round(available * bad / whole, 1)
        share = f"{100 * good / whole:.1f} %"
        drawn.append(
            _label(name, y) + _bar(_LABEL, y, width, "good") + _bar(_LABEL + width, y, rest, "bad")
        )
        drawn.append(_text(_LABEL + available + 6, y, share))
    return _svg(
        len(values),
        "".join(drawn),
        ", ".join(f"{n}: {g} matched, {b} unmatched" for n, g, b in values),
    )


def _svg(rows: int, drawn: str, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {rows * _ROW}" role="img" '
        f'aria-label="{escape(label)}">{drawn}</svg>'
    )


def _bar(x: float, y: float, width: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x}" y="{y + 4}" width="{width}" height="{_ROW - 10}" rx="2"/>'


def _label(name: str, y: float) -> str:
    return _text(0, y, name if len(name) <= 28 else f"{name[:27]}…")


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x}" y="{y + 17}">{escape(text)}</text>'


def _table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    raw: frozenset[int] | set[int] = frozenset(),
) -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(
        "<tr>"
        + "".join(_cell(value, raw=place in raw) for place, value in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: str, *, raw: bool) -> str:
    kind = ' class="n"' if value.replace(",", "").replace(".", "").lstrip("-").isdigit() else ""
    return f"<td{kind}>{value if raw else escape(value)}</td>"


def _n(count: int) -> str:
    return f"{count:,}"
