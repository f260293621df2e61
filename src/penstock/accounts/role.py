from __future__ import annotations

import enum


class Role(enum.IntEnum):
    """Each role includes those below it, except where the permission matrix says otherwise."""

    ANALYST = 1
    ADMIN = 2
    OPS = 3

    @property
    def word(self) -> str:
        return self.name.lower()

    @classmethod
    def named(cls, word: str) -> Role | None:
        return next((role for role in cls if role.word == word), None)
