"""Invoices and payments, from a seed: what a matcher meets, in known shares.

`one_to_one`: 60 % paid exactly, 15 % within 2 %, 5 % in parts (of which none is the whole), 20 % not at all; and
payments that nobody sent an invoice for, a tenth of the invoices. `splits`: every invoice in 2 to 5 parts. `batches`:
10 to 50 invoices a payment. `groups`: many to many by customer, currency and month.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

SEED = 42
_START = np.datetime64("2024-01-01")
_CURRENCIES = np.array(["EUR", "USD", "GBP"])


def one_to_one(folder: Path, rows: int, seed: int = SEED) -> tuple[Path, Path]:
    chance = np.random.default_rng(seed)
    cents = chance.integers(100, 1_000_000, rows)
    kinds = chance.choice(4, rows, p=[0.60, 0.15, 0.05, 0.20])
    exact, near, split = (np.flatnonzero(kinds == kind) for kind in range(3))
    drift = np.round(cents[near] * chance.uniform(-0.02, 0.02, len(near))).astype(np.int64)
    first = np.round(cents[split] * chance.uniform(0.2, 0.8, len(split))).astype(np.int64)
    orphans = rows // 10
    who = np.concatenate([exact, near, split, split, rows + np.arange(orphans)])
    paid = np.concatenate(
        [cents[exact], cents[near] + drift, first, cents[split] - first, chance.integers(100, 1_000_000, orphans)]
    )
    order = chance.permutation(len(who))
    left = _table(np.arange(rows), cents, chance, "INV", "invoice")
    right = _table(who[order], paid[order], chance, "PAY", "payment")
    return _write(folder, "invoices", left), _write(folder, "payments", right)


def splits(folder: Path, rows: int, seed: int = SEED) -> tuple[Path, Path]:
    """Every invoice is paid in parts; every tenth lacks one."""
    chance = random.Random(seed)
    invoices: list[tuple[int, int]] = []
    payments: list[tuple[int, int]] = []
    for number in range(rows):
        parts = [chance.randrange(100, 100_000) for _ in range(chance.randint(2, 5))]
        invoices.append((number, sum(parts)))
        payments += [(number, part) for part in (parts[1:] if number % 10 == 0 else parts)]
    return _pair(folder, invoices, payments, seed)


def batches(folder: Path, rows: int, seed: int = SEED) -> tuple[Path, Path]:
    """10 to 50 invoices a payment; every tenth payment is short."""
    chance = random.Random(seed)
    invoices: list[tuple[int, int]] = []
    payments: list[tuple[int, int]] = []
    batch = 0
    while len(invoices) < rows:
        amounts = [chance.randrange(100, 100_000) for _ in range(chance.randint(10, 50))]
        invoices += [(batch, amount) for amount in amounts]
        payments.append((batch, sum(amounts) - (100 if batch % 10 == 0 else 0)))
        batch += 1
    return _pair(folder, invoices, payments, seed)


def groups(folder: Path, rows: int, seed: int = SEED) -> tuple[Path, Path]:
    """Many to many: the sums of a customer, a currency and a month agree, but for every tenth group."""
    chance = np.random.default_rng(seed)
    customers = chance.integers(0, rows // 20 + 1, rows)
    cents = chance.integers(100, 100_000, rows)
    left = _table(customers, cents, np.random.default_rng(seed + 1), "INV", "invoice")
    shift = np.where(customers % 10 == 0, 1, 0)
    order = chance.permutation(rows)
    right = _table(customers, cents + shift, np.random.default_rng(seed + 1), "PAY", "payment").take(order)
    return _write(folder, "invoices", left), _write(folder, "payments", right)


def _pair(folder: Path, left: list[tuple[int, int]], right: list[tuple[int, int]], seed: int) -> tuple[Path, Path]:
    chance = np.random.default_rng(seed)
    tables = []
    for prefix, rows in (("INV", left), ("PAY", right)):
        keys, cents = (np.array(column) for column in zip(*rows, strict=True))
        tables.append(_table(keys, cents, chance, prefix, prefix.lower()))
    return _write(folder, "invoices", tables[0]), _write(folder, "payments", tables[1])


def _table(keys: np.ndarray, cents: np.ndarray, chance: np.random.Generator, prefix: str, word: str) -> pa.Table:
    count = len(keys)
    days = _START + chance.integers(0, 366, count).astype("timedelta64[D]")
    return pa.table(
        {
            "id": pa.array([f"{prefix}-{number:09d}" for number in range(count)]),
            "ref": pa.array([f"R{key:09d}" for key in keys.tolist()]),
            "amount": _amounts(cents),
            "currency": pa.array(_CURRENCIES[keys % 3]),
            "day": pa.array(days, pa.date32()),
            "customer": pa.array([f"C{key % 50_000:06d}" for key in keys.tolist()]),
            "note": pa.array([f"{word} {key}" for key in keys.tolist()]),
            "branch": pa.array(chance.integers(0, 500, count)),
        }
    )


def _write(folder: Path, name: str, table: pa.Table) -> Path:
    path = folder / f"{name}.parquet"
    pq.write_table(table, path, row_group_size=122_880)
    return path


def _amounts(cents: np.ndarray) -> pa.Array:
    """Cents as amounts of two decimals: the same integers, read with another scale."""
    wide = np.zeros((len(cents), 2), dtype=np.int64)
    wide[:, 0], wide[:, 1] = cents, cents >> 63
    return pa.Array.from_buffers(pa.decimal128(18, 2), len(cents), [None, pa.py_buffer(wide.tobytes())])
