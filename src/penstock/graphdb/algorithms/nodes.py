"""The nodes of a topology: labels laid end to end, so that one number names a node and no two
labels collide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graphdb.algorithms.errors import NodeNotFound
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """`keys[i]` are the primary keys of `labels[i]` in the order of the engine's offsets."""

    labels: tuple[str, ...]
    keys: tuple[pa.Array, ...]
    starts: Ints

    @classmethod
    def of(cls, labels: Sequence[str], keys: Sequence[pa.Array]) -> Nodes:
        starts = np.concatenate([[0], np.cumsum([len(k) for k in keys], dtype=np.int64)]).astype(
            np.int64
        )
        return cls(labels=tuple(labels), keys=tuple(keys), starts=starts)

    @property
    def count(self) -> int:
        return int(self.starts[-1])

    def span(self, label: str) -> slice:
        at = self.labels.index(label)
        return slice(int(self.starts[at]), int(self.starts[at + 1]))

    def ids(self, indexes: Sequence[int] | Ints) -> list[str]:
        """`Label:key` for each index, in their order."""
        wanted = np.asarray(indexes, dtype=np.int64)
        found = np.empty(len(wanted), dtype=object)
        which = np.searchsorted(self.starts, wanted, side="right") - 1
        for at in np.unique(which).tolist():
            mine = which == at
            texts = (
                self.keys[at]
                .take(pa.array(wanted[mine] - self.starts[at]))
                .cast(pa.string())
                .to_pylist()
            )
            found[mine] = [f"{self.labels[at]}:{text}" for text in texts]
        given: list[str] = found.tolist()
        return given

    def find(self, given: object, parameter: str) -> int:
        """The index of `Label:key`, or of a bare key that only one label has."""
        if isinstance(given, str) and (at := given.partition(":"))[0] in self.labels:
            exact = self._in_label(self.labels.index(at[0]), at[2])
            if exact is not None:
                return exact
        if not isinstance(given, str | int | float) or isinstance(given, bool):
            raise InvalidInput(
                f"{parameter} must be a node's id such as 'Label:key'.", parameter=parameter
            )
        found = [
            x for x in (self._in_label(i, given) for i in range(len(self.labels))) if x is not None
        ]
        if len(found) > 1:
            ids = self.ids(found)
            raise InvalidInput(
                f"{parameter} {str(given)[:80]!r} is a key of several labels.",
                hint=f"Name one of {', '.join(ids)}.",
                parameter=parameter,
                candidates=ids,
            )
        if not found:
            raise NodeNotFound(
                f"{parameter}: there is no node {str(given)[:80]!r} among {', '.join(self.labels)}.",
                hint="An id is 'Label:key', or the key alone where one label has it.",
                parameter=parameter,
            )
        return found[0]

    def _in_label(self, at: int, given: str | float) -> int | None:
        try:
            wanted = pa.scalar(given).cast(self.keys[at].type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError):
            return None
        position = pc.index(self.keys[at], wanted).as_py()
        return None if position < 0 else int(self.starts[at]) + int(position)

    def order(self) -> Ints:
        """Each node's rank by label, then key: what breaks a tie the same way whatever order the
        rows came in."""
        ranks = np.empty(self.count, dtype=np.int64)
        for at, keys in enumerate(self.keys):
            sorted_rows = pc.array_sort_indices(keys).to_numpy().astype(np.int64)
            ranks[sorted_rows + self.starts[at]] = np.arange(len(keys)) + self.starts[at]
        return ranks
