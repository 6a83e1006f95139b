"""Adding, and leaving and coming: what an entry costs on its way in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from memsift.evaluation.speed.clock import Contender, Work, in_turn, sampled
from memsift.evaluation.speed.data import Float32, clustered
from memsift.evaluation.speed.engines import ALWAYS, OURS, Absent, Bare, Engine
from memsift.evaluation.speed.limits import ADD
from memsift.evaluation.speed.row import SpeedRow, Time, row_of, time_of
from memsift.evaluation.speed.run import Run, Size, named

BATCH = 1000
SINGLES = 100
ALONE = "add, one by one"
CHURN = "delete half and refill, per entry"


def additions(run: Run) -> Iterator[SpeedRow]:
    """Per entry: in batches, one by one, and in place of others."""
    run.tell(f"{ADD} {named(*run.middle)}")
    yield _batches(run, run.middle)
    run.tell(f"{ALONE} {named(*run.middle)}")
    yield _singles(run, run.middle)
    for size in (run.small, run.middle):
        run.tell(f"{CHURN} {named(*size)}")
        yield _churn(run, size)


def _batches(run: Run, size: Size) -> SpeedRow:
    """From half full to full."""
    n, dim = size
    vectors = clustered(n, dim)
    half = n // 2
    able = [*ALWAYS, *(p for p in run.peers if p.grows)]

    def contender(made: type[Engine]) -> Contender:
        def turn(repeat: int) -> Work:
            engine = made(dim, n)
            engine.add(vectors[:half])

            def work() -> None:
                for start in range(half, n, BATCH):
                    engine.add(vectors[start : start + BATCH])

            return work

        return Contender(made.name, turn, n - half)

    quick, slow, others = _at_hand(able, dim)
    samples = in_turn([contender(made) for made in quick], run.repeats)
    # A graph takes seconds for its part, in which whatever disturbs it evens out: once is enough.
    samples |= {m.name: [sampled(contender(m).turn(0))] for m in slow if n <= m.largest}
    per = {m.name: float(n - half) if m in slow else 1.0 for m in (*quick, *slow)}
    times = [time_of(name, samples[name], per=per[name]) for name in samples]
    return row_of(ADD, n, dim, [*times, *others])


def _singles(run: Run, size: Size) -> SpeedRow:
    """A store that is that full takes a few more."""
    n, dim = size
    vectors, more = clustered(n, dim), clustered(SINGLES * (run.repeats + 1), dim, seed=5)

    def contender(made: type[Engine]) -> Contender:
        engine = made(dim, n + len(more))
        engine.add(vectors)

        def turn(repeat: int) -> Work:
            rows = [row[None, :] for row in more[SINGLES * repeat : SINGLES * (repeat + 1)]]

            def work() -> None:
                for row in rows:
                    engine.add(row)

            return work

        return Contender(made.name, turn, SINGLES)

    contenders = [contender(made) for made in ALWAYS]
    samples = in_turn(contenders, run.repeats)
    return row_of(ALONE, n, dim, [time_of(c.name, samples[c.name]) for c in contenders])


def _churn(run: Run, size: Size) -> SpeedRow:
    """A random half leaves and as many come, again and again on the same store."""
    n, dim = size
    vectors = clustered(n, dim)
    half = n // 2
    chance = np.random.default_rng(6)
    # The same halves for everybody: places in the list of ids that are there.
    places = [np.sort(chance.permutation(n)[:half]) for _ in range(run.repeats + 1)]
    newcomers = [clustered(half, dim, seed=200 + repeat) for repeat in range(run.repeats + 1)]

    def contender(made: type[Engine]) -> Contender:
        # Deleted places may be counted until they are used again.
        engine = made(dim, n + half)
        engine.add(vectors)
        live = np.arange(n)

        def turn(repeat: int) -> Work:
            nonlocal live
            gone = live[places[repeat]]
            kept = np.delete(live, places[repeat])
            live = np.concatenate([kept, np.arange(half) + n + half * repeat])

            def work() -> None:
                engine.delete(gone)
                engine.add(newcomers[repeat])

            return work

        return Contender(made.name, turn, half)

    every: list[type[Engine]] = [*OURS, Bare, *run.peers]
    able = [m for m in every if m.churns >= n]
    quick, slow, others = _at_hand(able, dim)
    contenders = [contender(made) for made in (*quick, *slow)]
    samples = in_turn(contenders, run.repeats)
    times = [time_of(c.name, samples[c.name]) for c in contenders]
    return row_of(CHURN, n, dim, [*times, *others])


def _at_hand(
    classes: Sequence[type[Engine]], dim: int
) -> tuple[list[type[Engine]], list[type[Engine]], list[Time]]:
    """Those that are quick and those that build graphs, and why the rest are absent."""
    here: list[type[Engine]] = []
    absent: list[Time] = []
    few: Float32 = clustered(16, dim)
    for made in classes:
        try:
            engine = made(dim, 64)
            engine.add(few)
            if made.churns:
                engine.delete(np.arange(4))
            engine.close()
            here.append(made)
        except Absent as error:
            absent.append(Time(made.name, note=str(error)))
        except Exception as error:  # another's library may fail as it likes: the others go on
            if made in OURS:
                raise
            absent.append(Time(made.name, note=f"failed: {type(error).__name__}: {error}"[:160]))
    return [m for m in here if m.exact], [m for m in here if not m.exact], absent
