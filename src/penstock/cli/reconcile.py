"""`penstock recipe|run|evidence`: reconciliation of two ledgers, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.graphs import Settings, print_document, print_table, read_file, read_settings
from penstock.cli.home import connect
from penstock.cli.output import FAILED, Json, emit, out, patience, plain
from penstock.client.words import EvidenceFormulas, EvidenceTable  # noqa: TC001 - the command line reads them

if TYPE_CHECKING:
    from penstock.client import shapes
    from penstock.client._sync.runs import Run

RECIPE = ("recipe_id", "version", "owner", "created_by", "created_at")
RUN = ("run_id", "name", "status", "recipe_id", "recipe_version", "created_at", "finished_at")


def list_recipes(*, json: Json = False) -> int:
    """List saved recipes."""
    with connect() as ps:
        return print_table(list(ps.reconcile.recipes()), RECIPE, json=json)


def show_recipe(recipe_id: str, *, version: int | None = None, json: Json = False) -> int:
    """Show a recipe, by default its newest version."""
    with connect() as ps:
        return print_document(ps.reconcile.recipe(recipe_id, version), json=json)


def save_recipe(file: Path, *, json: Json = False) -> int:
    """Save a recipe from a JSON file; one that is there gets a new version."""
    recipe = read_file(file)
    with connect() as ps:
        saved_ids = {entry["recipe_id"] for entry in ps.reconcile.recipes()}
        named = str(recipe.get("recipe_id"))
        saved = ps.reconcile.save(recipe, named if named in saved_ids else None)
    words = f"Recipe {saved['recipe_id']} has version {saved['version']}."
    emit(saved, as_json=json, render=lambda: out.print(words))
    return 0


def validate_recipe(file: Path, *, json: Json = False) -> int:
    """List all errors of a recipe, checked against the real columns; exit code 1 if any."""
    with connect() as ps, patience("Looking at both sides"):
        answer = ps.reconcile.validate(read_file(file))
    emit(answer, as_json=json, render=lambda: _print_faults(answer["faults"]))
    return 0 if answer["valid"] else FAILED


def explain_recipe(recipe_id: str, *, json: Json = False) -> int:
    """Show the SQL that a recipe becomes."""
    with connect() as ps:
        steps = ps.reconcile.explain(recipe_id)
    emit(steps, as_json=json, render=lambda: _print_steps(steps))
    return 0


def start_run(
    recipe: Annotated[str, Parameter(help="A saved recipe's id, or a JSON file.")],
    *,
    parameters: Settings = [],  # noqa: B006 - the command line reads it, nobody writes it
    wait: bool = True,
    json: Json = False,
) -> int:
    """Run a recipe and show the totals of both sides."""
    document = read_file(Path(recipe)) if recipe.endswith(".json") else recipe
    with connect() as ps:
        run = ps.reconcile.run(document, **read_settings(parameters))
        if wait:
            run.wait()
    emit(run.data, as_json=json, render=lambda: _print_run(run))
    return 0


def list_runs(*, recipe_id: str | None = None, json: Json = False) -> int:
    """List runs, newest first."""
    with connect() as ps:
        return print_table(
            [run.data for run in ps.reconcile.runs(recipe_id=recipe_id)], RUN, json=json
        )


def show_run(run_id: int, *, json: Json = False) -> int:
    """Show a run with its totals."""
    with connect() as ps:
        run = ps.reconcile.get(run_id)
    emit(run.data, as_json=json, render=lambda: _print_run(run))
    return 0


def cancel_run(run_id: int, *, reason: str = "", json: Json = False) -> int:
    """End a run at once."""
    with connect() as ps:
        run = ps.reconcile.get(run_id).cancel(reason)
    emit(run.data, as_json=json, render=lambda: out.print(f"Run {run_id} is {run.status}."))
    return 0


def evidence(
    run_id: int,
    table: EvidenceTable = "matched",
    *,
    to: Annotated[
        Path | None, Parameter(help="A file; without one it goes to stdout as CSV.")
    ] = None,
    limit: Annotated[int | None, Parameter(help="Only so many rows.")] = None,
    formulas: Annotated[
        EvidenceFormulas, Parameter(help="In CSV: text that a spreadsheet would compute.")
    ] = "neutralize",
    json: Json = False,
) -> int:
    """Write a run's evidence; the file extension is the format: csv, parquet, arrow, xlsx, json."""
    form = to.suffix.lstrip(".") if to and to.suffix else "json" if json else "csv"
    with connect() as ps, patience(f"Fetching {table}"):
        content = ps.reconcile.get(run_id).evidence(
            table, form=form, limit=limit, formulas=formulas
        )
    if to is None:
        out.file.write(content.decode())
        return 0
    to.write_bytes(content)
    written = {
        "run_id": run_id,
        "table": table,
        "form": form,
        "file": str(to),
        "bytes": len(content),
    }
    emit(written, as_json=json, render=lambda: out.print(f"{len(content):,} bytes in {to}"))
    return 0


def report(run_id: int, to: Path = Path("report.html"), *, json: Json = False) -> int:
    """Write a run's report as one HTML file."""
    with connect() as ps, patience("Fetching the report"):
        size = len(ps.reconcile.get(run_id).report(to).encode())
    written = {"run_id": run_id, "file": str(to), "bytes": size}
    emit(written, as_json=json, render=lambda: out.print(f"The report is in {to}"))
    return 0


def _print_run(run: Run) -> None:
    out.print(f"[bold]Run {run.id}[/bold]  {plain(run.info.name)}  {run.status}")
    if error := run.info.error:
        out.print(f"  [red]{plain(error.get('message', error))}[/red]")
    for side, totals in run.totals.items():
        out.print(
            f"  {side}: {totals['rows']:,} rows, {totals['matched']:,} matched, "
            f"{totals['unmatched']:,} unmatched"
        )
        for reason, count in totals["reasons"].items():
            out.print(f"    [dim]{plain(reason.replace('_', ' '))}[/dim] {count:,}")


def _print_faults(faults: list[shapes.Fault]) -> None:
    for fault in faults:
        out.print(f"{fault['severity']}: {fault['path']}: {fault['message']}", markup=False)
        if fault.get("suggestion"):
            out.print(f"  {fault['suggestion']}", style="dim", markup=False)
    if not faults:
        out.print("[green]✓[/green] No fault was found.")


def _print_steps(steps: list[shapes.RecipeStep]) -> None:
    for step in steps:
        out.print(f"[bold]{plain(step['step'])}[/bold]")
        out.print(step["sql"], markup=False)
