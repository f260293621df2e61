"""Steps of `normalized` conditions: one meaning on every engine, over all of Unicode."""

from __future__ import annotations

import random
import re
import unicodedata
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.engines.contract import EngineLimits
from penstock.engines.registry import ENGINES, open_engine
from penstock.reconcile.errors import RecipeInvalid
from penstock.reconcile.matching.clauses import _step
from penstock.reconcile.recipes import validation
from penstock.reconcile.recipes.model import Regex
from penstock.reconcile.recipes.patterns import check_replacement, group_count
from tests.reconcile.book_runs import digests, document, execute, rows
from tests.reconcile.oracle.values import step as plain_step

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.reconcile.recipes.model import Step

EVERY_CHARACTER = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
PATTERNS = [
    *(
        r"\w",
        r"\W",
        r"\d",
        r"\D",
        r"\s",
        r"\S",
        ".",
        "[^a]",
        r"x\b",
        r"\bx",
        "^.",
        ".$",
        "(?i)[a-z]",
    ),
    *(
        "(?i)k",
        "(?i)s",
        "(?i)[^k]",
        r"[\w-]",
        r"[\s\d]",
        r"[^\w]",
        r"\x41",
        r"\x{e9}",
        "é",
        "[À-ÿ]",
        r"\f",
    ),
    *(f"\\{sign}" for sign in ".^$|?*+()[]{}\\/-&~#'\"%@!,:;=` _"),
    *("<", ">", "[<>]", "[&]", "[~]", r"[\]\[\-\^]", "[-.]", "[.-]"),
]
STRINGS = [
    *("", "a", "aaab", "ab\n", "\n", "a\nb", "A-1", "inv 007/ÄÖ", "e\u0301", "ſK", "b a", "aXbX1_"),
    *("aabbcc", "  x ", "\t1\u00a02", "ß", "<A>", "a.b*c", "{2}", "\U0001f468\u200d\U0001f469"),
]


def on_every_engine(
    folder: Path,
    step: Step,
    texts: Sequence[str],
) -> dict[str, list[str | None]]:
    """What a step makes of texts, by engine."""
    results = {}
    table = pa.table({"n": pa.array(range(len(texts)), pa.int64()), "t": pa.array(texts)})
    for name in sorted(ENGINES):
        scratch = folder / f"{name}-{random.getrandbits(64):x}"
        scratch.mkdir()
        with open_engine(name, scratch, EngineLimits(memory_bytes=512 * 1024**2)) as engine:
            engine.load("texts", table)
            sql = f"SELECT n, {_step(step, 't', engine.dialect)} AS v FROM texts ORDER BY n"
            results[name] = engine.stream(sql).read_all().column("v").to_pylist()
    return results


@pytest.mark.parametrize("step", ["trim", "case", "punctuation", "spaces", "digits"])
def test_a_step_makes_the_same_of_every_character_on_every_engine(
    tmp_path: Path,
    step: Step,
) -> None:
    texts = [f"a{sign}B" for sign in EVERY_CHARACTER]
    results = on_every_engine(tmp_path, step, texts)
    assert results["datafusion"] == results["duckdb"]
    assigned = [n for n, sign in enumerate(EVERY_CHARACTER) if unicodedata.category(sign) != "Cn"]
    wrong = [
        (hex(ord(EVERY_CHARACTER[n])), results["duckdb"][n])
        for n in assigned
        if results["duckdb"][n] != plain_step(str(step), texts[n])
    ]
    assert wrong == []


def test_a_pattern_finds_the_same_in_every_character_on_every_engine(tmp_path: Path) -> None:
    """Those of the scripts in use one by one, of the others some."""
    signs = [*EVERY_CHARACTER[:0x3100], *EVERY_CHARACTER[0x3100::61]]
    texts = [f"ax{sign}by-_1" for sign in signs]
    for pattern in PATTERNS:
        step = Regex(regex=pattern, replace="#")
        results = on_every_engine(tmp_path, step, texts)
        both = zip(signs, results["duckdb"], results["datafusion"], strict=True)
        unlike = [(hex(ord(sign)), a, b) for sign, a, b in both if a != b]
        assert unlike == [], pattern


def generated(chance: random.Random, depth: int = 2) -> str:
    """A pattern of what is allowed, and some of what is not."""
    atoms = ["a", "b", "A", "1", " ", ".", r"\d", r"\w", r"\s", r"\W", "[ab]", "[^a1]", r"[\w.-]"]
    atoms += [r"\b", "^", "$", r"\.", "-", "é", "[A-Z]", "X", "_", r"\<", "[[a]", r"\x{e9}"]
    parts = []
    for _ in range(chance.randint(1, 4)):
        atom = chance.choice(atoms)
        if depth and chance.random() < 0.3:
            inside = "|".join(generated(chance, depth - 1) for _ in range(chance.randint(1, 3)))
            atom = f"({chance.choice(['', '?:'])}{inside})"
        lazy = chance.choice(["", "", "?", "+"])
        counts = ["*", "+", "?", "{2}", "{1,}", "{0,2}", "{1}", "{2,3}"]
        parts.append(atom + (chance.choice(counts) + lazy if chance.random() < 0.4 else ""))
    return "".join(parts)


def replaced(pattern: str, replacement: str, text: str) -> str:
    """What both engines do: no empty match directly after another match."""
    compiled = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    pieces, at, search_from = [], 0, 0
    while search_from <= len(text) and (match := compiled.search(text, search_from)):
        if match.start() == match.end() == at and pieces:
            search_from = at + 1
            continue
        pieces += [text[at : match.start()], expanded(match, replacement)]
        at = match.end()
        search_from = at + (match.start() == at)
    return "".join([*pieces, text[at:]])


def expanded(match: re.Match[str], replacement: str) -> str:
    return re.sub(r"\\(\d)", lambda group: match[int(group[1])] or "", replacement)


def test_generated_patterns_replace_the_same_on_every_engine(tmp_path: Path) -> None:
    chance, accepted, refused = random.Random(7), 0, 0
    rows_of = pa.table({"n": pa.array(range(len(STRINGS)), pa.int64()), "t": pa.array(STRINGS)})
    engines = []
    for name in sorted(ENGINES):
        (tmp_path / name).mkdir()
        engines.append(open_engine(name, tmp_path / name, EngineLimits(memory_bytes=512 * 1024**2)))
        engines[-1].load("texts", rows_of)
    for _ in range(1000):
        pattern = generated(chance)
        try:
            groups = group_count(pattern)
        except ValueError:
            refused += 1
            continue
        accepted += 1
        replacement = r"<\1>" if groups else "#"
        step = Regex(regex=pattern, replace=replacement)
        texts = [replaced(pattern.replace(r"\x{e9}", "é"), replacement, text) for text in STRINGS]
        for engine in engines:
            sql = f"SELECT n, {_step(step, 't', engine.dialect)} AS v FROM texts ORDER BY n"
            result = engine.stream(sql).read_all().column("v").to_pylist()
            assert result == texts, (engine.name, pattern)
    for engine in engines:
        engine.__exit__()
    assert accepted >= 300
    assert refused >= 30


@pytest.mark.parametrize(
    ("regex", "says"),
    [
        (r"\<|\>", "write <"),
        (r"(?x) a b", "(?i) at the very beginning"),
        (r"(?u)\w", "(?i) at the very beginning"),
        (r"(?P<n>a)", "(?i) at the very beginning"),
        (r"a*+", "two quantifiers"),
        (r"\u00e9", r"\x{e9}"),
        (r"x{1001}", "1000 at most"),
        (r"(x{40}){40}", "repeats too much"),
        (r"a{2", r"write \{"),
        (r"a{,2}", r"write \{"),
        (r"\07", "not for every engine"),
        (r"\p{L}", "not for every engine"),
        (r"(|a)*", "match nothing"),
        (r"[a&&b]", "escape both signs"),
        (r"[[:alpha:]]", r"write \["),
        (r"(?i)ß", "leave (?i) out"),
        (r"a\Z", "not for every engine"),
        (r"(a", r"write \("),
    ],
)
def test_a_pattern_that_engines_read_differently_is_refused_with_what_to_write(
    regex: str,
    says: str,
) -> None:
    condition = {"left": "r", "op": "normalized", "right": "r", "steps": [{"regex": regex}]}
    with pytest.raises(RecipeInvalid) as caught:
        validation.read(document(rules=[{"name": "x", "conditions": [condition]}]))
    [fault] = caught.value.details["faults"]
    assert fault["path"] == "rules.0.conditions.0.steps.0.regex"
    assert says in fault["message"]


def test_a_digit_after_a_group_is_refused_for_engines_read_one_number_or_two() -> None:
    with pytest.raises(ValueError, match="a digit after a group"):
        check_replacement("(a)", r"\10")
    check_replacement("(a)", r"\1-0")


@pytest.mark.parametrize("steps", [["month", "trim"], ["year", "digits"], ["trim", "month"]])
def test_steps_after_a_period_read_it_as_text(tmp_path: Path, steps: list[str]) -> None:
    condition = {"left": "d", "op": "normalized", "right": "d", "steps": steps}
    recipe = document(rules=[{"name": "x", "conditions": [condition]}])
    left, right = (pa.table({"id": [0], "d": [day]}) for day in ("2024-01-15", "2024-01-01"))
    done = [execute(tmp_path / name, recipe, left, right, engine=name) for name in sorted(ENGINES)]
    assert [len(rows(run, "matched")) for run in done] == [1, 1]
    assert digests(done[0]) == digests(done[1])
