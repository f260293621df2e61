"""Build hook: a wheel, also an editable one, has the code that `tools.generate` writes."""

from __future__ import annotations

import sys

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GeneratedCode(BuildHookInterface):
    def initialize(self, _version: str, build_data: dict[str, list[str]]) -> None:
        """Called before a wheel's files are collected; git ignores these, so they are named."""
        sys.path.insert(0, self.root)
        try:
            from tools.generate import ROOT, files, generate
        finally:
            sys.path.remove(self.root)
        generate()
        build_data["artifacts"] += [f"/{file.relative_to(ROOT).as_posix()}" for file in files()]
