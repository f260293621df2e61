from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

from tools.vague_names import vague

if TYPE_CHECKING:
    from pathlib import Path

PLANTED = """
    def f(found, *, given=None):
        for each in found:
            with open(each) as held:
                told = [said for said in held]
        try:
            return told
        except OSError as known:
            match known:
                case [wanted]:
                    return wanted
    """


def test_every_vague_binding_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "planted.py"
    file.write_text(dedent(PLANTED))
    names = {problem.split(": ")[1].split()[0] for problem in vague([tmp_path])}
    assert names == {"found", "given", "each", "held", "told", "said", "known", "wanted"}


def test_fields_attributes_and_keywords_are_not_bindings(tmp_path: Path) -> None:
    file = tmp_path / "allowed.py"
    file.write_text("class Row:\n    held: int\n\nrows = store.found(given=1)\nrows.held = 2\n")
    assert vague([file]) == []
