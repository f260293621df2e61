"""`make chaos N=1000 SEED=… QUEUE=nats`: a storm, its figures, and what the checker found."""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from penstock.kit import logging
from tests.chaos.faults_run import Report, run_faults

MILD = 200


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--queue", choices=["postgresql", "nats"], default="postgresql")
    parser.add_argument(
        "--keep", action="store_true", help="keep the logs of a storm that went well, too"
    )
    options = parser.parse_args()
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    logging.configure(level="ERROR", form="text")
    folder = Path(tempfile.mkdtemp(prefix="penstock-chaos-"))
    folder.chmod(0o755)
    console = Console()
    console.print(f"seed {seed}, {options.schedules} schedules, logs in {folder}")
    with console.status("") as status:
        report = asyncio.run(
            run_faults(
                folder,
                seed=seed,
                schedules=options.schedules,
                with_nats=options.queue == "nats",
                say=status.update,
            )
        )
    show(console, report)
    if not report.judgement.faults and not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    mild = options.schedules >= MILD and report.judgement.stale_refused < MILD
    if mild:
        console.print(f"[red]too mild:[/red] fewer than {MILD} stale writes were seen refused")
    return 1 if report.judgement.faults or mild else 0


def show(console: Console, report: Report) -> None:
    judgement = report.judgement
    console.print(f"{report.schedules} schedules from seed {report.seed} in {report.seconds:.0f} s")
    console.print(
        "faults  " + ", ".join(f"{name} {count}" for name, count in report.faults.most_common())
    )
    console.print(
        f"{judgement.jobs} jobs accepted, {judgement.attempts} attempts, {judgement.stale_refused}"
        f" stale writes refused; [bold]{len(judgement.double_ends)} double ends,"
        f" {len(judgement.lost)} lost, {len(judgement.leaked_locks)} leaked locks[/bold],"
        f" {len(judgement.other)} other faults"
    )
    for fault in judgement.faults[:40]:
        console.print(f"[red]✗[/red] {fault}", markup=True)


if __name__ == "__main__":
    sys.exit(main())
