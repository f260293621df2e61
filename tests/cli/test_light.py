"""`--help` answers before anything is loaded; a command loads what it needs, and a shell knows all
of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.cli import output
from penstock.cli.commands import COMMANDS, GROUPS
from penstock.cli.tree import app
from tools import helps

HEAVY = {
    "cyclopts",
    "rich",
    "httpx2",
    "anyio",
    "asyncio",
    "pydantic",
    "fastapi",
    "asyncpg",
    "pyarrow",
    "sqlglot",
}


def _loaded(*arguments: str) -> set[str]:
    code = (
        "import sys, atexit; from penstock.cli import main;"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr));"
        f"main({list(arguments)!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "arguments", [["--help"], [], ["job", "--help"], ["job", "list", "--help"], ["serve", "-h"]]
)
def test_help_loads_nothing_but_the_list_of_commands(arguments: list[str]) -> None:
    loaded = _loaded(*arguments)
    assert HEAVY & loaded == set()
    assert {name for name in loaded if name.startswith("penstock")} == {
        "penstock",
        "penstock.cli",
        "penstock.cli.commands",
        "penstock.cli.overview",
    }


def test_what_a_commands_help_says_is_what_the_command_takes() -> None:
    assert helps.FILE.read_text() == helps.helps(), "a command changed; run: python -m tools.helps"


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> str:
    script = tmp_path_factory.mktemp("completion") / "penstock.bash"
    script.write_text(app.generate_completion(shell="bash"))
    return str(script)


def _completed(script: str, *words: str) -> set[str]:
    """What bash itself would offer: it is asked as the completion of its line editor asks."""
    line = " ".join(words)
    code = f"""
    source {script}
    complete -p penstock >/dev/null || exit 9
    function=$(complete -p penstock | sed 's/.*-F \\([^ ]*\\).*/\\1/')
    COMP_WORDS=({" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
    COMP_LINE='{line}'; COMP_POINT={len(line)}
    $function penstock '{words[-1]}' '{words[-2]}'
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", code], capture_output=True, text=True, check=True
    )
    return {word.strip() for word in done.stdout.split()}


def test_bash_completes_commands_groups_options_and_words(bash: str) -> None:
    first = _completed(bash, "penstock", "")
    assert {command.words for command in COMMANDS if " " not in command.words} <= first
    assert GROUPS.keys() <= first
    assert {"list", "show", "cancel", "retry", "tail"} <= _completed(bash, "penstock", "job", "")
    assert _completed(bash, "penstock", "snap") == {"snapshot"}
    assert "--status" in _completed(bash, "penstock", "job", "list", "--st")
    assert {"queued", "failed"} <= _completed(bash, "penstock", "job", "list", "--status", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert output.guarded(app, ["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "instance" in script
    assert "\033" not in script
