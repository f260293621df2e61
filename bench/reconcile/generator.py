"""Generates invoices and payments from a seed, with typical kinds of matches in fixed shares.

`one_to_one`: 60 % paid exactly, 15 % within 2 %, 5 % in two parts (of which none is the whole), 20
% not at all; and payments without an invoice, a tenth of the invoices. `splits`: every invoice in 2
to 5 parts. `batches`: 10 to 50 invoices a payment. `groups`: many to many by customer, currency and
month. Every tenth sum is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEED = 42
_START = np.datetime64("2024-01-01")
_CURRENCIES = pa.array(["EUR", "USD", "GBP"])
_CUSTOMERS = 50_000
Numbers = np.ndarray[Any, np.dtype[np.int64]]


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
        [
            cents[exact],
            cents[near] + drift,
            first,
            cents[split] - first,
            chance.integers(100, 1_000_000, orphans),
        ]
    )
    order = chance.permutation(len(who))
    return _pair(folder, chance, (np.arange(rows), cents), (who[order], paid[order]))


def splits(folder: Path, rows: int, seed: int = SEED) -> tuple[Path, Path]:
    """Every invoice is paid in parts; every tenth lacks one."""
    chance = np.random.default_rng(seed)
    counts = chance.integers(2, 6, rows)
    whose = np.repeat(np.arange(rows), counts)
    parts = chance.integers(100, 100_000, len(whose))
    begins = np.concatenate([[0], np.cumsum(counts)[:-1]])
    sums = np.add.reduceat(parts, begins)
    keep = np.ones(len(whose), dtype=bool)
    keep[begins[::10]] = False
    order = chance.permutation(np.flatnonzero(keep))
    return _pair(folder, chance, (np.arange(rows), sums), (whose[order], parts[order]))


def batches(folder: Path, rows: int, seed: int = SEED) -> tuple[Path, Path]:
    """10 to 50 invoices a payment; every tenth payment is short."""
    chance = np.random.default_rng(seed)
    sizes = chance.integers(10, 51, rows // 10 + 1)
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), rows)) + 1]
    whose = np.repeat(np.arange(len(sizes)), sizes)
    cents = chance.integers(100, 100_000, len(whose))
    sums = np.add.reduceat(cents, np.concatenate([[0], np.cumsum(sizes)[:-1]]))
    sums[::10] -= 100
    order = chance.permutation(len(whose))
    return _pair(folder, chance, (whose[order], cents[order]), (np.arange(len(sizes)), sums))


def groups(folder: Path, rows: int, seed: int = SEED) -> tuple[Path, Path]:
    """Two invoices a payment within a customer, a currency and a month, whose sums agree but for
    every tenth."""
    chance = np.random.default_rng(seed)
    customers, days = chance.integers(0, rows // 100 + 1, rows), chance.integers(0, 366, rows)
    cents = chance.integers(100, 100_000, rows)
    months = (_START + days.astype("timedelta64[D]")).astype("datetime64[M]").astype(np.int64)
    order = np.lexsort((months, customers))
    changes = np.diff(customers[order]) | np.diff(months[order])
    begins = np.concatenate([[0], np.flatnonzero(changes) + 1])
    place = np.arange(rows) - np.repeat(begins, np.diff(np.append(begins, rows)))
    firsts = np.flatnonzero(place % 2 == 0)
    paid = np.add.reduceat(cents[order], firsts)
    who, when = customers[order][firsts], days[order][firsts]
    paid[(who % 10 == 0) & (place[firsts] == 0)] += 1
    mixed = chance.permutation(len(who))
    left = _table(customers, cents, chance, "INV", days)
    right = _table(who[mixed], paid[mixed], chance, "PAY", when[mixed])
    return _write(folder, "invoices", left), _write(folder, "payments", right)


CASES: dict[str, Callable[[Path, int], tuple[Path, Path]]] = {
    "one_to_one": one_to_one,
    "splits": splits,
    "batches": batches,
    "groups": groups,
}


def _pair(
    folder: Path,
    chance: np.random.Generator,
    left: tuple[Numbers, Numbers],
    right: tuple[Numbers, Numbers],
) -> tuple[Path, Path]:
    tables = [
        _table(keys, cents, chance, prefix, chance.integers(0, 366, len(keys)))
        for prefix, (keys, cents) in (("INV", left), ("PAY", right))
    ]
    return _write(folder, "invoices", tables[0]), _write(folder, "payments", tables[1])


def _table(
    keys: Numbers, cents: Numbers, chance: np.random.Generator, prefix: str, days: Numbers
) -> pa.Table:
    count = len(keys)
    return pa.table(
        {
            "id": _named(f"{prefix}-", np.arange(count), 9),
            "ref": _named("R", keys, 9),
            "amount": _amounts(cents),
            "currency": _CURRENCIES.take(pa.array(keys % 3)),
            "day": pa.array(_START + days.astype("timedelta64[D]"), pa.date32()),
            "customer": _named("C", keys % _CUSTOMERS, 6),
            "note": _named(f"{prefix.lower()} ", keys, 0),
            "branch": pa.array(chance.integers(0, 500, count)),
        }
    )


def _named(prefix: str, numbers: Numbers, width: int) -> pa.Array:
    text = pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), width=width, padding="0")
    return pc.binary_join_element_wise(prefix, text, "")


def _write(folder: Path, name: str, table: pa.Table) -> Path:
    path = folder / f"{name}.parquet"
    pq.write_table(table, path, row_group_size=122_880)
    return path


def _amounts(cents: Numbers) -> pa.Array:
    """Cents as amounts of two decimals: the same integers, read with another scale."""
    wide = np.zeros((len(cents), 2), dtype=np.int64)
    wide[:, 0], wide[:, 1] = cents, cents >> 63
    return pa.Array.from_buffers(
        pa.decimal128(18, 2), len(cents), [None, pa.py_buffer(wide.tobytes())]
    )
