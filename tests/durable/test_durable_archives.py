"""Stores of every version so far are opened, value for value, and go on living."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from memsift import MemoryStore

ARCHIVES = Path(__file__).parents[1] / "data" / "archives"
VERSIONS = sorted(path.parent.name for path in ARCHIVES.glob("*/agent.memsift"))


def test_there_are_archives():
    assert "0.1.0" in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_store_opens_as_it_was_and_goes_on(version, tmp_path):
    folder, path = ARCHIVES / version, tmp_path / "agent.memsift"
    shutil.copyfile(folder / "agent.memsift", path)
    path.chmod(0o600)
    spec = importlib.util.spec_from_file_location("store_maker", folder / "make_store.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    pinned = json.loads((folder / "agent.json").read_text(encoding="utf-8"))
    # The pinned archive rests for a week of its own time: looking must not depend on today's date.
    found = {name: maker.dump(path, name) for name in pinned}
    for name, values in pinned.items():
        got = json.loads(json.dumps(found[name]))
        assert {**got, "archived": None} == {**values, "archived": None}
    with MemoryStore.open(path) as store:
        assert store.verify().ok
        head = store.audit.head()
        store.compact(10)
        assert store.audit.verify(store.audit.head(), since=head).status == "ok"
        assert int(store.add(np.ones(8))) == 24
