"""Settings are declared by the packages that use them, and are together what is documented."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path

from penstock.kit.config import Section
from penstock.wiring.settings import Settings
from tools import reference

SOURCE = Path(reference.__file__).parents[1] / "src"


def own_fields(section: type[Section]) -> set[str]:
    return set(vars(section).get("__annotations__", ())) & set(section.model_fields)


def sections() -> set[type[Section]]:
    """Those of all `settings.py`, with fields of their own."""
    for file in SOURCE.glob("penstock/*/settings.py"):
        if file.parent.name != "cli":
            importlib.import_module(".".join(file.relative_to(SOURCE).with_suffix("").parts))
    below, classes = [Section], set()
    while below:
        section = below.pop()
        classes.add(section)
        below += section.__subclasses__()
    return {section for section in classes if own_fields(section)}


def test_each_section_is_among_the_settings() -> None:
    assert not [section for section in sections() if not issubclass(Settings, section)]


def test_no_setting_is_declared_twice() -> None:
    names = Counter(name for section in sections() for name in own_fields(section))
    assert names.keys() == Settings.model_fields.keys()
    assert max(names.values()) == 1


def test_names_and_defaults_are_the_documented_ones() -> None:
    documented = (SOURCE.parent / "docs/reference/settings.md").read_text()
    assert reference.settings() == documented
