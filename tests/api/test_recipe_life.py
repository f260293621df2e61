"""One recipe over many runs of changing data, with a plain program as the judge of each."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.test_runs import QUEUES, deployment, me, over, rows, start, upload

if TYPE_CHECKING:
    import httpx2

    from tests.graphs.deployment import Deployment

__all__ = ["deployment", "me"]
ROUNDS = 6
EMPTY_ROUND, LOOSER_ROUND = 3, 4
KEYS = ["é", "e\u0301", "0", "00", "1", "1.0", "01", "k", "K", "NULL", "a b"]
REFERENCE = {"left": "ref", "op": "eq", "right": "ref"}
AMOUNT = {"left": "amount", "op": "eq", "right": "amount"}


@dataclass(slots=True)
class Book:
    """Both sides as they are today, what people decided, and what was open after the last run."""

    random: random.Random
    left: dict[str, tuple[str, int]] = field(default_factory=dict)
    right: dict[str, tuple[str, int]] = field(default_factory=dict)
    matched_by_hand: set[tuple[str, str]] = field(default_factory=set)
    taken_apart: set[tuple[str, str]] = field(default_factory=set)
    runs_open: dict[tuple[str, str], int] = field(default_factory=dict)
    is_loose: bool = False

    def change(self) -> None:
        for side in (self.left, self.right):
            for key in list(side):
                if self.random.random() < 0.4:
                    del side[key]
            for _ in range(self.random.randint(3, 8)):
                record = (self.random.choice("ABCDEF"), self.random.randint(1, 3))
                side[self.random.choice(KEYS)] = record

    def fits(self, left_key: str, right_key: str) -> bool:
        """Whether the rule makes this pair."""
        left, right = self.left[left_key], self.right[right_key]
        is_apart = (left_key, right_key) in self.taken_apart
        return not is_apart and (left[0] == right[0] if self.is_loose else left == right)

    def side(self, name: str) -> dict[str, tuple[str, int]]:
        return self.left if name == "left" else self.right


def csv(side: dict[str, tuple[str, int]]) -> bytes:
    lines = [f"{key},{ref},{amount}\r\n" for key, (ref, amount) in side.items()]
    return ("\ufeffid,ref,amount\r\n" + "".join(lines)).encode()


async def save(client: httpx2.AsyncClient, engine: str, book: Book, version: int | None) -> int:
    sources = {
        name: {"upload": await upload(client, f"{name}.csv", csv(book.side(name)))}
        | {"primary_key": ["id"]}
        for name in ("left", "right")
    }
    conditions = [REFERENCE] if book.is_loose else [REFERENCE, AMOUNT]
    recipe = {"recipe_id": engine, "name": engine, "engine": engine, "sources": sources}
    recipe["rules"] = [{"name": "rule", "conditions": conditions}]
    if version is None:
        answer = await client.post("/api/recipes", json={"recipe": recipe})
    else:
        headers = {"If-Match": f'"{version}"'}
        answer = await client.put(
            f"/api/recipes/{engine}", json={"recipe": recipe}, headers=headers
        )
    assert answer.status_code in (200, 201), answer.text
    number: int = answer.json()["data"]["version"]
    return number


async def decide(client: httpx2.AsyncClient, engine: str, book: Book) -> None:
    """A pair is put together by hand, and another one taken apart."""
    for kind, decided in (("match", book.matched_by_hand), ("unmatch", book.taken_apart)):
        if not book.left or not book.right:
            return
        pair = (book.random.choice(sorted(book.left)), book.random.choice(sorted(book.right)))
        body = {"kind": kind, "left_key": [pair[0]], "right_key": [pair[1]]}
        answer = await client.post(f"/api/recipes/{engine}/decisions", json=body)
        assert answer.status_code in (201, 409), answer.text
        if answer.status_code == 201:
            decided.add(pair)


def judge(book: Book, tables: dict[str, list[dict[str, Any]]]) -> None:
    pairs = [(row["left_id"], row["right_id"]) for row in tables["matched"]]
    free = {
        "left": [row["id"] for row in tables["unmatched_left"]],
        "right": [row["id"] for row in tables["unmatched_right"]],
    }
    assert sorted([left for left, _ in pairs] + free["left"]) == sorted(book.left)
    assert sorted([right for _, right in pairs] + free["right"]) == sorted(book.right)
    by_hand = {
        pair for pair in book.matched_by_hand if pair[0] in book.left and pair[1] in book.right
    }
    manual = {
        pair for pair, row in zip(pairs, tables["matched"], strict=True) if row["rule"] == "manual"
    }
    assert manual == by_hand
    assert all(book.fits(*pair) for pair in pairs if pair not in by_hand)
    assert not [
        (left, right) for left in free["left"] for right in free["right"] if book.fits(left, right)
    ]
    open_now = {(side, key) for side, keys in free.items() for key in keys}
    ages = {item: book.runs_open.get(item, 0) + 1 for item in open_now}
    assert {(row["side"], row["key"]): row["runs_open"] for row in tables["open_items"]} == ages
    cleared = {
        (side, key): "matched" if key in book.side(side) else "gone"
        for side, key in book.runs_open.keys() - open_now
    }
    assert {(row["side"], row["key"]): row["outcome"] for row in tables["cleared_items"]} == cleared
    book.runs_open = ages


@pytest.mark.parametrize(("engine", "seed"), [("duckdb", 1), ("datafusion", 2)])
async def test_every_run_of_a_recipe_is_what_a_plain_program_makes_of_the_days_data(
    deployment: Deployment, me: httpx2.AsyncClient, engine: str, seed: int
) -> None:
    book, version = Book(random.Random(seed)), None
    async with deployment.working(queues=QUEUES):
        for number in range(ROUNDS):
            book.change()
            if number == EMPTY_ROUND:
                book.left.clear()
            book.is_loose = number >= LOOSER_ROUND
            version = await save(me, engine, book, version)
            await decide(me, engine, book)
            run = await over(me, await start(me, recipe_id=engine))
            assert run["status"] == "completed", run["error"]
            names = ("matched", "unmatched_left", "unmatched_right", "open_items", "cleared_items")
            judge(book, {name: await rows(me, run, name) for name in names})
    assert book.matched_by_hand
    assert book.taken_apart
