"""A look at the whole store: nothing wrong with a sound one, and each damage under its own name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsift import FifoPolicy, MemoryStore

CHECKS = [
    "memory",
    "pages",
    "rows",
    "strays",
    "texts",
    "table",
    "index",
    "bounds",
    "ghosts",
    "chain",
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    rng = np.random.default_rng(0)
    with MemoryStore.open(tmp_path / "a.memsift", 8, budget=1500, policy=FifoPolicy()) as store:
        store.add_many(rng.normal(size=(1600, 8)), [{"i": i} for i in range(1600)])
        store.search(rng.normal(size=8))
        yield store


def test_a_sound_store(store: Any) -> None:
    found = store.verify()
    assert found.ok
    assert found.checks == dict.fromkeys(CHECKS, "ok")
    assert (found.live, found.archived) == (len(store), store.archived().size)
    assert found.records == len(store.audit) > 0
    assert str(found).startswith("nothing is wrong (")
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.live = 0


DAMAGE = {
    "DELETE FROM vector WHERE key & 0xffff = 1": {"bounds": False, "strays": False, "rows": False},
    "INSERT INTO vector VALUES ((1 << 40) + 5000, zeroblob(32))": {"strays": True},
    "INSERT INTO note VALUES ((1 << 40) + 5000, '{}')": {"strays": True},
    "UPDATE entry SET row = zeroblob(4) WHERE key & 0xffff = 1": {"rows": True},
    "UPDATE vector SET row = zeroblob(32) WHERE key & 0xffff = 1": {"rows": True},
    "UPDATE vector SET row = zeroblob(32) WHERE key & 0xffff = 1500": {"rows": True, "table": True},
    "UPDATE note SET json = '{}' WHERE key & 0xffff = 1500": {"rows": True},
    "UPDATE entry SET archived_at = 1.0 WHERE key & 0xffff = 1500": {"table": True},
    "UPDATE entry SET archived_at = NULL WHERE key & 0xffff = 1": {"table": True},
    "UPDATE entry SET key = key + (7 << 40) WHERE key & 0xffff = 1": {"strays": True},
    "UPDATE audit SET body = CAST(replace(CAST(body AS TEXT), 'spared', 'sparex') AS BLOB) WHERE seq = 1": {
        "chain": True
    },
    "DELETE FROM audit WHERE seq = 1": {"chain": True},
    "DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)": {"chain": True},
    "DELETE FROM audit": {"chain": True},
    """UPDATE audit SET body = CAST(replace(CAST(body AS TEXT), '"spared":0', '"spared":1') AS BLOB)
       WHERE seq = (SELECT max(seq) FROM audit)""": {"chain": True},
}


@pytest.mark.parametrize("statement", DAMAGE)
def test_damage_has_a_name(store: Any, statement: str) -> None:
    store.flush()
    store._db.execute(statement)
    found = store.verify()
    wanted = {name for name, sure in DAMAGE[statement].items() if sure}
    wrong = {name for name, text in found.checks.items() if text != "ok"}
    assert wanted <= wrong, found.checks
    assert found.ok == (not wrong)
    assert found.ok or str(found).startswith("something is wrong")


def test_damage_in_memory_has_a_name(store: Any) -> None:
    memory = store._memory
    memory.table.vectors[3] *= -1
    assert set(wrong(store)) == {"table"}
    memory.table.vectors[3] *= -1
    memory.table._columns.own("use_count")[5] += 1
    assert set(wrong(store)) == {"table"}
    memory.table._columns.own("use_count")[5] -= 1
    memory.next_id = 10
    assert set(wrong(store)) == {"bounds"}


def wrong(store: Any) -> dict[str, str]:
    return {name: text for name, text in store.verify().checks.items() if text != "ok"}
