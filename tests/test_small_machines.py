"""A Raspberry Pi Zero's share: 64 MiB of address space beyond the interpreter and numpy, and nothing but numpy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memsift.planes import PLANES

LIFE = """
import resource, sys
import numpy as np

for name in {blocked}:
    sys.modules[name] = None
beyond = int({beyond} * 2**20)
held = next(line for line in open("/proc/self/status") if line.startswith("VmSize"))
limit = int(held.split()[1]) * 1024 + beyond
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    np.ones(beyond + 2**20, np.uint8)
except MemoryError:
    print("the limit holds")

import memsift

chance = np.random.default_rng(0)
store = memsift.MemoryStore(64, budget=10_000, policy={policy}, vectors={vectors!r})
for _ in range(480):
    store.add_many(chance.standard_normal((25, 64)), [{{"n": n}} for n in range(25)])
for _ in range(40):
    store.search(chance.standard_normal(64), 10)
store.search(chance.standard_normal(64), 10, where={{"n": {{"$lt": 10}}}})
store.search_many(chance.standard_normal((40, 64)), 10)
plan = store.plan(0.5)
print("survivors", int(plan.keep.sum()), "of", len(store))
store.compact(0.5)
for _ in range(240):
    store.add_many(chance.standard_normal((25, 64)))
print("holds", len(store), "finds", len(store.search(chance.standard_normal(64), 10)))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to read sizes from")
@pytest.mark.parametrize("policy", ["None", "memsift.CoherencePolicy()"])
@pytest.mark.parametrize("vectors", PLANES)
def test_ten_thousand_entries_live_in_64_mebibytes_with_numpy_alone(
    vectors: str, policy: str, tmp_path: Path
) -> None:
    life = LIFE.format(
        blocked=["numkong", "rustworkx", "cryptography", "click", "rich", "matplotlib"],
        beyond=64,
        policy=policy,
        vectors=vectors,
    )
    done = subprocess.run(
        [sys.executable, "-c", life],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "TMPDIR": str(tmp_path)},
    )
    assert done.stderr == ""
    said = done.stdout.splitlines()
    assert said[0] == "the limit holds"
    assert said[1].startswith("survivors 49") or said[1].startswith("survivors 50")
    assert said[2].endswith("finds 10")
    assert 9_700 <= int(said[2].split()[1]) <= 10_000
