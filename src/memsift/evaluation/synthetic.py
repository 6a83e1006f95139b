"""The project's own streams: the shapes of traffic that real logs have too little of, made from a seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from memsift.evaluation.trace import Labels, Stream, Trace

Float32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

DIM = 64
MEMORIES = 2000
QUERIES = 1200
# How far a memory lies from its topic's centre, and a query from what it asks for.
SPREAD, NOISE = 0.6, 0.15
TOPICS = 50


def reference_like(seed: int) -> Trace:
    """As in the reference's benchmark: a few hot topics get all queries, which come back nearly the same."""
    rng = np.random.default_rng([1, seed])
    centres = _unit(rng.normal(size=(TOPICS, DIM)))
    topics = rng.integers(0, TOPICS, MEMORIES)
    hot = rng.choice(TOPICS, 5, replace=False)
    asks = _near(rng, centres[rng.choice(hot, QUERIES)], 0.1)
    return _trace("reference-like", _near(rng, centres[topics], SPREAD), asks, _spread_out())


def drift(seed: int) -> Trace:
    """Interest wanders: what is asked for now is asked for again soon, and hardly ever much later."""
    rng = np.random.default_rng([2, seed])
    centres = _unit(rng.normal(size=(TOPICS, DIM)))
    topics = rng.integers(0, TOPICS, MEMORIES)
    middles = np.linspace(0, TOPICS, QUERIES)
    wanted = (middles + rng.normal(0, 5, QUERIES)).astype(int) % TOPICS
    return _trace(
        "drift",
        _near(rng, centres[topics], SPREAD),
        _near(rng, centres[wanted], 0.3),
        _spread_out(),
    )


def shift(seed: int) -> Trace:
    """Half-way, all that was hot is cold, and other topics are hot."""
    rng = np.random.default_rng([3, seed])
    centres = _unit(rng.normal(size=(TOPICS, DIM)))
    topics = rng.integers(0, TOPICS, MEMORIES)
    order = rng.permutation(TOPICS)
    late = np.arange(QUERIES) >= QUERIES // 2
    wanted = np.where(late, rng.choice(order[12:24], QUERIES), rng.choice(order[:12], QUERIES))
    return _trace(
        "shift",
        _near(rng, centres[topics], SPREAD),
        _near(rng, centres[wanted], 0.3),
        _spread_out(),
    )


def off_topic(seed: int) -> Trace:
    """Between the questions, the agent looks up things of which nothing is stored: the window is about those."""
    rng = np.random.default_rng([4, seed])
    centres = _unit(rng.normal(size=(TOPICS, DIM)))
    strange = _unit(rng.normal(size=(10, DIM)))
    memories = _near(rng, centres[rng.integers(0, TOPICS, MEMORIES)], SPREAD)
    asks = _near(rng, memories[rng.integers(0, MEMORIES, QUERIES)], 0.3)
    idle = np.arange(QUERIES) % 10 != 0
    asks[idle] = _near(rng, strange[rng.integers(0, 10, int(idle.sum()))], 0.1)
    return _trace("off-topic", memories, asks, _spread_out(), scored=~idle)


def duplicate_storm(seed: int) -> Trace:
    """One text is stored hundreds of times with tiny differences, while the questions are about everything."""
    rng = np.random.default_rng([5, seed])
    centres = _unit(rng.normal(size=(TOPICS, DIM)))
    memories = _near(rng, centres[rng.integers(0, TOPICS, MEMORIES)], SPREAD)
    storm = rng.random(MEMORIES) < 0.4
    memories[storm] = _near(rng, np.repeat(centres[:1], int(storm.sum()), 0), 0.02)
    asked = _spread_out()
    others = np.flatnonzero(~storm)
    wanted = others[(rng.random(QUERIES) * np.searchsorted(others, asked)).astype(int)]
    return _trace("duplicate-storm", memories, _near(rng, memories[wanted], 0.3), asked)


def fixation(seed: int) -> Trace:
    """For a long time all queries are about one topic; then all of twenty are asked for."""
    rng = np.random.default_rng([6, seed])
    centres = _unit(rng.normal(size=(20, DIM)))
    memories = _near(rng, centres[rng.integers(0, 20, MEMORIES)], SPREAD)
    late = np.arange(QUERIES) >= int(0.8 * QUERIES)
    wanted = np.where(late, rng.integers(0, 20, QUERIES), 0)
    asks = _near(rng, centres[wanted], 0.3)
    return _trace("fixation", memories, asks, _spread_out(), scored=late)


SYNTHETIC: dict[str, Callable[[int], Trace]] = {
    "reference-like": reference_like,
    "drift": drift,
    "shift": shift,
    "off-topic": off_topic,
    "duplicate-storm": duplicate_storm,
    "fixation": fixation,
}


def _unit(rows: npt.NDArray[np.floating]) -> Float32:
    unit: Float32 = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _near(rng: np.random.Generator, centres: Float32, spread: float) -> Float32:
    """Unit rows around unit rows: `spread` is the length of the noise added to each."""
    return _unit(centres + spread * _unit(rng.normal(size=centres.shape)))


def _spread_out() -> Ints:
    """Queries evenly among the additions, from the first hundredth on."""
    return np.linspace(MEMORIES // 100, MEMORIES, QUERIES).astype(np.int64)


def _trace(
    name: str,
    memories: Float32,
    queries: Float32,
    asked: Ints,
    scored: npt.NDArray[np.bool_] | None = None,
) -> Trace:
    """Labels are the exact ten nearest among the memories so far; scored after 30 % of the stream, as logs are."""
    similar = np.dot(queries, memories.T)
    nearest = []
    for row, stop in zip(similar, asked.tolist(), strict=True):
        nearest.append(np.argsort(-row[:stop], kind="stable")[:10].tolist())
    exact = Labels.from_lists(nearest)
    if scored is not None:
        nearest = [rows if is_ else [] for rows, is_ in zip(nearest, scored.tolist(), strict=True)]
    stream = Stream(memories, queries, asked, Labels.from_lists(nearest), exact=exact)
    return Trace(name, [stream], score_from=0.3)
