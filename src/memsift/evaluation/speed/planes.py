"""The search where vectors are held with loss, beside bare numpy over all of them."""

from __future__ import annotations

from collections.abc import Iterator

from memsift.evaluation.speed.data import clustered
from memsift.evaluation.speed.engines import LOSSY, Bare, Store
from memsift.evaluation.speed.row import SpeedRow
from memsift.evaluation.speed.run import Run, named
from memsift.evaluation.speed.searches import one_by_one, ready

LOSS = "search, held with loss"


def planes(run: Run) -> Iterator[SpeedRow]:
    """A row for each size: float16 and int8, with the share of the true best ten that they find."""
    for n, dim in run.sizes:
        run.tell(f"{LOSS} {named(n, dim)}")
        engines, others = ready([Store, *LOSSY, Bare], clustered(n, dim))
        try:
            yield one_by_one(run, n, dim, engines, others, LOSS)
        finally:
            for engine, _ in engines:
                engine.close()
