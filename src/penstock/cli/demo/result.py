"""What the four acts of the demo came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.cli.demo.books import Books
    from penstock.cli.demo.lake import Kept
    from penstock.cli.demo.rings import Rings
    from penstock.cli.demo.worker_kills import Story


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    storm: Story
    rings: Rings
    books: Books
    lake: Kept
    seconds: float

    @property
    def good(self) -> bool:
        return self.storm.good and self.rings.good and self.books.good and self.lake.good
