"""Documents that fail when they lie."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import memsift

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_readme_s_python_runs():
    """From top to bottom, as a reader would."""
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 6
    for code in blocks:
        exec(compile(code, "README.md", "exec"), names)  # noqa: S102 - our own document


def test_the_readme_s_tables_are_those_of_the_last_replay():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import figures
    finally:
        sys.path.pop(0)
    assert figures.printed(README, figures.load()) == README
    assert README.count("<!-- table") == README.count("<!-- end -->") == 8
    assert not re.search(r"<!-- table [^>]* -->\n<!-- end -->", README), "a table is missing"


def test_the_readme_s_commands_exist():
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_architecture_names_every_room():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for path in sorted((ROOT / "src" / "memsift").iterdir()):
        name = path.stem if path.suffix == ".py" else f"{path.name}/"
        if not name.startswith("__") and path.suffix != ".typed" and path.name != "data":
            assert f"`{name}`" in text, f"ARCHITECTURE.md does not name {name}"


def modules() -> list[str]:
    return [
        m.name
        for m in pkgutil.walk_packages(memsift.__path__, "memsift.")
        if "__main__" not in m.name
    ]


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings_hold(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
    assert module.__doc__, f"{name} does not say what it is"


def test_the_changelog_knows_this_version():
    assert f"## {memsift.__version__}" in (ROOT / "CHANGELOG.md").read_text()
