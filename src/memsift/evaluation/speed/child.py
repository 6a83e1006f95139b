"""The process that measures: what it is told, what it says, and how it is started.

Libraries read the number of threads when they are loaded, so it must be set before a process begins.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from memsift.errors import InvalidValue, MemsiftError
from memsift.evaluation.speed.engines import PEERS, Engine
from memsift.evaluation.speed.run import SIZES, Run, Size
from memsift.evaluation.speed.sections import SECTIONS, steps

ONE_THREAD = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "TOKIO_WORKER_THREADS",
)
UNIT = "microseconds of CPU time, one BLAS thread, medians"


def measure(
    sizes: Sequence[Size] = SIZES,
    repeats: int = 5,
    peers: Sequence[type[Engine]] = PEERS,
    only: Sequence[str] | None = None,
    tell: Callable[[str], None] = lambda step: None,
) -> dict[str, Any]:
    """One run in a process of its own: `{"about", "rows", "unit"}`, ready for JSON.

    Raises
    ------
    MemsiftError
        The process failed; what it had to say is on stderr.
    """
    asked = {
        "sizes": [list(size) for size in sizes],
        "repeats": repeats,
        "peers": [p.name for p in peers],
        "only": None if only is None else list(only),
    }
    settings = dict.fromkeys(ONE_THREAD, "1") | {"ANONYMIZED_TELEMETRY": "False"}
    command = [sys.executable, "-m", "memsift.evaluation.speed", json.dumps(asked)]
    about: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    with subprocess.Popen(
        command, env={**os.environ, **settings}, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            said = json.loads(line)
            about |= said.get("about", {})
            rows += [said["row"]] if "row" in said else []
            if "step" in said:
                tell(said["step"])
    if child.returncode:
        raise MemsiftError(f"the measuring process failed with exit code {child.returncode}")
    return {"about": about, "rows": rows, "unit": UNIT}


def expected_steps(sizes: Sequence[Size], only: Sequence[str] | None = None) -> int:
    """How often `measure` will tell."""
    return steps(Run(tuple(sizes)), None if only is None else list(only))


def peers_of(text: str) -> list[type[Engine]]:
    """`all`, `none`, or names separated by commas; a name's beginning will do (`faiss` for both of its)."""
    if text in ("all", "none"):
        return list(PEERS) if text == "all" else []
    chosen: list[type[Engine]] = []
    for word in filter(None, (w.strip().lower() for w in text.split(","))):
        found = [p for p in PEERS if p.name.lower().startswith(word)]
        if not found:
            names = ", ".join(p.name for p in PEERS)
            raise InvalidValue(f"peers must be all, none, or among {names}; got {word[:40]!r}")
        chosen += [p for p in found if p not in chosen]
    return chosen


def sizes_of(text: str) -> list[Size]:
    """`2000x64,20000x384` as (entries, dim) pairs."""
    sizes = []
    for word in filter(None, (w.strip().lower() for w in text.split(","))):
        parts = word.split("x")
        if len(parts) != 2 or not all(p.isdecimal() for p in parts):
            raise InvalidValue(f"sizes must be like 20000x384, with commas; got {word[:40]!r}")
        n, dim = map(int, parts)
        if not (100 <= n <= 5_000_000 and 1 <= dim <= 8_192):
            raise InvalidValue(
                f"sizes must have 100 to 5,000,000 entries of dim 1 to 8,192; got {word[:40]!r}"
            )
        sizes.append((n, dim))
    if not sizes:
        raise InvalidValue("sizes must name at least one like 20000x384; got none")
    return sizes


def sections_of(text: str) -> list[str]:
    """Names of sections, separated by commas."""
    chosen = [w.strip().lower() for w in text.split(",") if w.strip()]
    for word in chosen:
        if word not in SECTIONS:
            names = ", ".join(SECTIONS)
            raise InvalidValue(f"only must be among {names}; got {word[:40]!r}")
    if not chosen:
        raise InvalidValue(f"only must name at least one of {', '.join(SECTIONS)}; got none")
    return chosen
