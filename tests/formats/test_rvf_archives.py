"""Files of every version so far are read, value for value."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from memsift.formats.rvf import read_rvf

ARCHIVES = Path(__file__).parents[1] / "data" / "archives"
VERSIONS = sorted(path.parent.name for path in ARCHIVES.glob("*/memory.rvf"))


def test_there_are_archives():
    assert "0.1.0" in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_an_archive_gives_what_went_in(version):
    folder = ARCHIVES / version
    spec = importlib.util.spec_from_file_location("archive_maker", folder / "make.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    pinned = json.loads((folder / "memory.json").read_text(encoding="utf-8"))
    got = read_rvf(folder / "memory.rvf")
    found = maker.as_json(got)
    # Columns that came later take their defaults.
    for name in found["columns"].keys() - pinned["columns"].keys():
        values = found["columns"].pop(name)
        assert all(value in (None, 0) or value != value for value in values), name
    assert found == pinned
    assert got.vectors.shape == (20, 8)
    assert (folder / "readme.md").read_text(encoding="utf-8").count(version) >= 2
