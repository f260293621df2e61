"""Text of a file that others replace while we run, such as a token that expires."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True)
class WatchedFile:
    """The text of a file, without the space around it; it is read again when the file changed."""

    path: Path
    _version: tuple[int, int, int] | None = None
    _text: str = field(default="", repr=False)

    def read(self) -> str:
        try:
            status = self.path.stat()
            version = status.st_ino, status.st_mtime_ns, status.st_size
            if version != self._version:
                self._text = self.path.read_text().strip()
                self._version = version
        except OSError as e:
            raise InvalidInput(
                f"{self.path} cannot be read ({e.strerror}).",
                hint="Is it mounted, and may this user read it?",
            ) from None
        return self._text
