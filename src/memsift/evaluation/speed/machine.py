"""What the figures were taken on: enough to judge them by, nothing that says whose machine it was."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from memsift.evaluation.speed.clock import Contender, in_turn

# Far beyond any cache: 256 MB.
ROWS, DIM = 166_667, 384


def machine() -> dict[str, Any]:
    """Processor, cores, last-level cache, system, versions; the load when the run began."""
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "cache": _cache(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": _blas(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def bandwidth(repeats: int = 5) -> dict[str, float]:
    """How fast one thread reads memory, in bytes per second of CPU time: by a sum, and by a dot product per row."""
    rows = np.ones((ROWS, DIM), np.float32)
    query, out = np.ones(DIM, np.float32), np.empty(ROWS, np.float32)
    contenders = [
        Contender("sum", lambda repeat: rows.sum),
        Contender("vecdot", lambda repeat: lambda: np.vecdot(rows, query, out=out)),
    ]
    samples = in_turn(contenders, repeats)
    return {
        name: float(f"{rows.nbytes / (1e-6 * np.median([s.cpu for s in found])):.4g}")
        for name, found in samples.items()
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cache() -> str | None:
    """The last level's size, as the system writes it."""
    sizes = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"))
    return sizes[-1].read_text().strip() if sizes else None


def _blas() -> str:
    config: Any = np.show_config(mode="dicts")
    found = config.get("Build Dependencies", {}).get("blas", {})
    return f"{found.get('name', 'unknown')} {found.get('version', '')}".strip()
