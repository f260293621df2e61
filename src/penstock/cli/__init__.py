"""`penstock …`: the user half speaks HTTP, the operator half is loaded only when it is called."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from penstock.cli import overview

if TYPE_CHECKING:
    from cyclopts import App


def main(arguments: list[str] | None = None) -> None:
    argv = sys.argv[1:] if arguments is None else arguments
    if (text := overview.asked(argv)) is not None:
        print(text)
        return
    from penstock.cli import output, tree

    sys.exit(output.guarded(tree.app, argv))


def __getattr__(name: str) -> App:
    if name == "app":
        from penstock.cli import tree

        return tree.app
    raise AttributeError(f"module 'penstock.cli' has no attribute {name!r}")
