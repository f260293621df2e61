"""Every fenced block of the documentation is what it says: it runs, or parses, or is marked as what
a program prints.

    bash, python     run in order, page by page, beside a running `penstock up`
    bash by-hand     not run: foreground servers, other machines, `make`; its commands must exist
    json, toml       parsed
    sql, cypher      parsed, and read-only
    http             a request: its line is well-formed and its body is JSON
    text             a picture, or what a program prints

Anything else, and a fence without a language, fails.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT, Block, blocks, pages
from tests.docs.sandbox import Sandbox

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

RUN = ("bash", "python")
ALL = [block for page in pages() for block in blocks(page)]
STILL = [block for block in ALL if block.language not in RUN or block.marker == "by-hand"]
RUNNING = sorted({block.page for block in ALL if block.language in RUN and not block.marker})


@pytest.mark.parametrize("block", STILL, ids=lambda block: block.place)
def test_a_block_that_does_not_run_is_well_formed(block: Block) -> None:
    match block.language, block.marker:
        case "bash", "by-hand":
            _commands_exist(block.text)
        case "json", "":
            json.loads(block.text)
        case "toml", "":
            tomllib.loads(block.text)
        case "sql", "":
            _selects(block.text)
        case "cypher", "":
            _reads(block.text)
        case "http", "":
            _request(block.text)
        case "text", "":
            pass
        case _:
            pytest.fail(
                f"{block.place}: a block of {block.language or 'no language'} {block.marker!r} is "
                "not known"
            )


@pytest.mark.parametrize("page", RUNNING)
def test_the_blocks_of_a_page_run_in_order(page: str, running: Cli, tmp_path: Path) -> None:
    with Sandbox(tmp_path, running) as sandbox:
        for block in blocks(ROOT / page):
            if not block.marker and block.language == "bash":
                sandbox.bash(block)
            elif not block.marker and block.language == "python":
                sandbox.python(block)


def test_links_between_pages_lead_somewhere() -> None:
    dead = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages()
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not dead


def _commands_exist(text: str) -> None:
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    for line in text.replace("\\\n", " ").splitlines():
        words = [
            word
            for word in shlex.split(line, comments=True)
            if "=" not in word or word.startswith("-")
        ]
        if words and words[0].endswith("penstock"):
            _is_a_command(words[1:])
        elif words and words[0] == "make":
            targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert words[1] in targets, f"make has no {words[1]}"


def _is_a_command(words: list[str]) -> None:
    from penstock.cli import app

    app.parse_args(words, print_error=False, exit_on_error=False)


def _selects(text: str) -> None:
    import sqlglot

    assert [type(statement).__name__ for statement in sqlglot.parse(text, dialect="duckdb")] != []


def _reads(text: str) -> None:
    from penstock.guard import cypher

    cypher.check_cypher(text)


def _request(text: str) -> None:
    line, _, body = text.partition("\n")
    assert re.fullmatch(r"(GET|POST|PUT|DELETE) /\S*", line)
    if body.strip():
        json.loads(body)
