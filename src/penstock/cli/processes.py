"""`penstock serve`, `worker`, `migrate`: single processes for a supervisor or an orchestrator."""

from __future__ import annotations

import asyncio
from pathlib import Path  # noqa: TC003 - the command line reads it
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.output import USAGE, Json, complain, emit, out, patience
from penstock.kit.process_startup import loading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.kit.migrate import Migration


def serve(
    *,
    host: str | None = None,
    port: int | None = None,
    processes: int | None = None,
    tls_cert: Annotated[
        Path | None, Parameter(help="Certificate with its chain, PEM: serve HTTPS.")
    ] = None,
    tls_key: Annotated[Path | None, Parameter(help="The certificate's key, PEM.")] = None,
    json: Json = False,
) -> int:
    """Run the control plane, in as many processes as are asked for."""
    with loading():
        from penstock.wiring import control_plane
        from penstock.wiring import settings as config

    asked = {
        "host": host,
        "port": port,
        "processes": processes,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
    }
    options = {name: value for name, value in asked.items() if value is not None}
    return _ended(control_plane.serve(config.load(**options)), json=json)


def worker(
    *,
    queues: str | None = None,
    slots: int | None = None,
    name: str | None = None,
    once: Annotated[bool, Parameter(negative="", help="Run one job and exit 0 or 1.")] = False,
    wait: Annotated[float, Parameter(help="With --once: how long to wait for a job.")] = 5.0,
    json: Json = False,
) -> int:
    """Run a worker. QUEUES is a list with commas."""
    with loading():
        from penstock.wiring import settings as config
        from penstock.wiring.worker import run_worker

    options = {"worker_queues": queues, "worker_slots": slots}
    settings = config.load(**{key: value for key, value in options.items() if value is not None})
    return _ended(run_worker(settings, name=name, once=once, wait=wait), json=json)


def _ended(code: int, *, json: bool) -> int:
    """Its log is on stderr; that it is over is all that there is to say."""
    emit({"exit_code": code}, as_json=json, render=lambda: None)
    return code


def migrate(
    *,
    print_: Annotated[
        bool, Parameter(name="--print", negative="", help="Print the SQL instead of running it.")
    ] = False,
    scaling_role: Annotated[
        str | None,
        Parameter(help="Let this database role of an autoscaler read penstock.scaling alone."),
    ] = None,
    scaling_password_file: Annotated[
        Path | None, Parameter(help="With --scaling-role: a file with the role's password.")
    ] = None,
    json: Json = False,
) -> int:
    """Bring the schema of PENSTOCK_DATABASE_URL up to date."""
    from penstock.jobs import scaling
    from penstock.kit import migrate as migrations
    from penstock.wiring import settings as config
    from penstock.wiring.migrations import MIGRATION_PACKAGES

    found_migrations = migrations.find(MIGRATION_PACKAGES)
    if print_:
        shown = [
            {"room": m.room, "version": m.version, "name": m.name, "sql": m.text}
            for m in found_migrations
        ]
        emit({"migrations": shown}, as_json=json, render=lambda: _print_sql(found_migrations))
        return 0
    settings = config.load()
    if settings.database_dsn is None:
        complain(
            "PENSTOCK_DATABASE_URL is not set.",
            "The embedded database is migrated by `penstock up`.",
        )
        return USAGE
    if scaling_password_file is not None and scaling_role is None:
        complain("--scaling-password-file needs --scaling-role.", "Name the role as well.")
        return USAGE
    with patience("Migrating"):
        applied = asyncio.run(migrations.migrate(settings.database_dsn, found_migrations))
    text = "\n".join(f"applied {name}" for name in applied) or "The schema is up to date."
    shown_result: dict[str, object] = {"applied": applied}
    if scaling_role is not None:
        role = asyncio.run(
            scaling.grant(settings.database_dsn, scaling_role, _password_in(scaling_password_file))
        )
        shown_result["scaling_role"] = {"name": role.name, "created": role.created}
        text += f"\nThe role {role.name} reads {scaling.VIEW} alone."
    emit(shown_result, as_json=json, render=lambda: out.print(text))
    return 0


def _password_in(file: Path | None) -> str | None:
    from penstock.kit.errors import InvalidInput

    if file is None:
        return None
    try:
        return file.read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is no text"
        raise InvalidInput(f"{file} cannot be read: {reason}.") from None


def _print_sql(steps: Sequence[Migration]) -> None:
    for migration in steps:
        out.print(f"-- {migration.room} {migration.version:04} {migration.name}", markup=False)
        out.print(migration.text, markup=False, soft_wrap=True)
