"""The commands as cyclopts has them; each is loaded when it is called."""

from __future__ import annotations

from cyclopts import App

from penstock import __version__
from penstock.cli.commands import COMMANDS, GROUPS

SAYS = (
    "`penstock …`: the user half speaks HTTP, the operator half is loaded only when it is called."
)


def _grown() -> App:
    root = App(
        name="penstock",
        version=__version__,
        help=SAYS,
        help_format="plaintext",
        result_action="return_value",
    )
    places = {"": root} | {name: App(name=name, help=says) for name, says in GROUPS.items()}
    for name in GROUPS:
        root.command(places[name])
    for command in COMMANDS:
        group, _, name = command.words.rpartition(" ")
        places[group].command(f"penstock.cli.{command.target}", name=name)
    return root


app = _grown()
