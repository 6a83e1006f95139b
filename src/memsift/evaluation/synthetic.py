"""Streams made up by rule: what recurs, what drifts, and what misleads a policy that believes its queries.

Each is a function of a seed alone. Memories lie around topics in 64 dimensions; what a query needs are its exact ten
nearest among the memories before it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from memsift.evaluation.trace import Labels, Stream, Trace

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DIM = 64
MEMORIES = 2000
TOPICS = 20
K = 10
# Nothing before this share of a stream is scored, as in logs.
SCORED_FROM = 0.3
# Length of the noise added to a unit centre or to a unit text: a memory of a topic, a question about a memory, and the
# same words again.
AROUND, ABOUT, SAME = 0.5, 0.25, 0.1


def reference_like(seed: int) -> Trace:
    """A few hot topics get every query, in the same words again and again; the questions come at the end.

    6 of 20 topics are hot, each with 20 questions that recur: 400 times while the memories come, evenly from all
    topics, and 300 times when all are stored. Only the latter are scored, as in the reference's benchmark.
    """
    rng = np.random.default_rng(seed)
    hot, wordings, asked_before, asked_after = 6, 20, 400, 300
    vectors, centres, _ = _even_topics(rng)
    questions = _noisy(rng, np.repeat(centres[:hot], wordings, axis=0), AROUND)
    asked = _asked(rng, asked_before, 0, MEMORIES - 1)
    asked = np.concatenate([asked, np.full(asked_after, MEMORIES)])
    queries = _noisy(rng, questions[rng.integers(0, len(questions), len(asked))], SAME)
    return _trace("reference-like", vectors, queries, asked, score_from=(MEMORIES - 0.5) / MEMORIES)


def drift(seed: int) -> Trace:
    """Topics wander, some fast and most slowly, and what is stored and asked wanders with them.

    150 topics of zipf-like popularity; every fourth leaves its past behind within some dozens of memories.
    """
    return _wandering("drift", seed, exponent=0.8)


def shift(seed: int) -> Trace:
    """As in `drift`, but half way the popular topics become unpopular at once, and others popular."""
    return _wandering("shift", seed, exponent=1.0, until=MEMORIES // 2)


def off_topic(seed: int) -> Trace:
    """The last queries mislead: short fits of asking about what no scored question asks for.

    Topics and recurring questions as in `reference_like`. After every 100 memories, 30 queries about the topics that
    are not hot come within 10 memories; they are asked but need nothing. Right after them the hot questions go on.
    """
    rng = np.random.default_rng(seed)
    hot, wordings, fit, every = 6, 20, 30, 100
    vectors, centres, _ = _even_topics(rng)
    questions = _noisy(rng, np.repeat(centres[:hot], wordings, axis=0), AROUND)
    starts = np.arange(every, MEMORIES + 1, every) - 10
    strays = np.repeat(starts, fit) + np.tile(np.arange(fit) // 3, len(starts))
    asked = np.concatenate([strays, _asked(rng, 800, 1, MEMORIES)])
    order = np.argsort(asked, kind="stable")
    cold = centres[rng.integers(hot, TOPICS, len(strays))]
    about = questions[rng.integers(0, len(questions), len(asked) - len(strays))]
    queries = np.concatenate([_noisy(rng, cold, ABOUT), _noisy(rng, about, SAME)])[order]
    scored = (np.arange(len(asked)) >= len(strays))[order]
    return _trace("off-topic", vectors, queries, asked[order], scored=scored)


def duplicate_storm(seed: int) -> Trace:
    """One text is stored 600 times in nearly the same words, while the questions are about everything.

    The storm takes two of three places between 25 % and 70 % of the stream. Each of 1,000 questions is about a topic
    by chance and near one of its memories.
    """
    rng = np.random.default_rng(seed)
    vectors, centres, topic = _even_topics(rng)
    storm = np.arange(MEMORIES // 4, MEMORIES * 7 // 10)
    storm = storm[storm % 3 > 0][:600]
    vectors[storm] = _noisy(rng, np.repeat(vectors[:1], len(storm), axis=0), 0.02)
    asked = _asked(rng, 1000, 10, MEMORIES)
    queries = _about_all(rng, vectors, centres, np.delete(topic, storm), storm, len(asked))
    return _trace("duplicate storm", vectors, queries, asked)


def fixation(seed: int) -> Trace:
    """For a long time all queries are about one topic; then about all 20.

    800 queries about one topic until 80 % of the memories are stored, then 400 about all. Only the latter are scored.
    """
    rng = np.random.default_rng(seed)
    vectors, centres, _ = _even_topics(rng)
    turn = MEMORIES * 8 // 10
    asked = np.concatenate([_asked(rng, 800, 10, turn), _asked(rng, 400, turn, MEMORIES)])
    about = np.concatenate([np.zeros(800, np.int64), rng.integers(0, TOPICS, 400)])
    scored = np.arange(len(asked)) >= 800
    queries = _noisy(rng, centres[about], AROUND)
    return _trace("fixation", vectors, queries, asked, scored=scored, score_from=0.8)


def topics(seed: int, topics: int = TOPICS) -> Trace:
    """How many topics survive while five are hot: at the end each is asked for once.

    A question needs any one memory of its topic, so that *kept* is the share of topics that are still there.

    Parameters
    ----------
    topics : int, at least 6
    """
    rng = np.random.default_rng(seed)
    vectors, centres, topic = _even_topics(rng, topics)
    hot, asked_before = 5, 1000
    asked = np.concatenate([_asked(rng, asked_before, 10, MEMORIES - 1), np.full(topics, MEMORIES)])
    about = np.concatenate([rng.integers(0, hot, asked_before), np.arange(topics)])
    queries = _noisy(rng, centres[about], AROUND)
    whole: list[list[int]] = [[] for _ in range(asked_before)]
    whole += [np.flatnonzero(topic == t).tolist() for t in range(topics)]
    need = Labels.from_lists(whole, [[0] * len(rows) for rows in whole])
    stream = _stream(vectors, queries, asked, asked == MEMORIES, need)
    return Trace("topics", [stream], need="coverage", score_from=SCORED_FROM)


def _wandering(name: str, seed: int, *, exponent: float, until: int | None = None) -> Trace:
    """Memories and 1,000 queries of topics whose centres take a step with each memory.

    Parameters
    ----------
    exponent : float
        The topic of rank r is chosen with a probability in proportion to r ** -exponent.
    until : int, optional
        With this memory the ranks are dealt anew.
    """
    rng = np.random.default_rng(seed)
    count, fast, slow, noise = 150, 0.08, 0.003, 0.4
    centres = _unit(rng.standard_normal((count, DIM)))
    steps = np.where(np.arange(count) % 4 == 0, fast, slow)[:, None]
    popularity = np.arange(1.0, count + 1) ** -exponent
    popularity /= popularity.sum()
    rank = rng.permutation(count)
    asked = _asked(rng, 1000, 1, MEMORIES)
    vectors, queries = np.empty((MEMORIES, DIM)), np.empty((len(asked), DIM))
    for row, start, stop in zip(
        range(MEMORIES + 1),
        np.searchsorted(asked, np.arange(MEMORIES + 1), "left"),
        np.searchsorted(asked, np.arange(MEMORIES + 1), "right"),
        strict=True,
    ):
        about = rank[rng.choice(count, int(stop - start) + 1, p=popularity)]
        queries[start:stop] = _noisy(rng, centres[about[1:]], noise)
        if row == MEMORIES:
            break
        if row == until:
            rank = rng.permutation(count)
            about = rank[rng.choice(count, 1, p=popularity)]
        vectors[row] = _noisy(rng, centres[about[:1]], noise)[0]
        centres = _unit(centres + steps * rng.standard_normal(centres.shape) / np.sqrt(DIM))
    return _trace(name, vectors, queries, asked)


def _even_topics(rng: np.random.Generator, count: int = TOPICS) -> tuple[Float64, Float64, Ints]:
    """Memories spread evenly over topics, in mixed order; the topics' centres; the topic of each memory."""
    centres = _unit(rng.standard_normal((count, DIM)))
    topic = rng.permutation(np.arange(MEMORIES) % count)
    return _noisy(rng, centres[topic], AROUND), centres, topic


def _about_all(
    rng: np.random.Generator,
    vectors: Float64,
    centres: Float64,
    topic: Ints,
    without: Ints,
    count: int,
) -> Float64:
    """Questions near memories, each topic as often as any other; those in rows `without` are left out."""
    rows = np.delete(np.arange(len(vectors)), without)
    about = rng.integers(0, len(centres), count)
    chosen = [rng.choice(rows[topic == t]) for t in about]
    return _noisy(rng, vectors[chosen], ABOUT)


def _asked(rng: np.random.Generator, count: int, low: int, high: int) -> Ints:
    """Places of `count` queries by chance, ascending: from `low` to `high` memories are stored before one."""
    return np.sort(rng.integers(low, high + 1, count))


def _trace(
    name: str,
    vectors: Float64,
    queries: Float64,
    asked: Ints,
    *,
    scored: npt.NDArray[np.bool_] | None = None,
    score_from: float = SCORED_FROM,
) -> Trace:
    counted = np.ones(len(asked), np.bool_) if scored is None else scored
    return Trace(name, [_stream(vectors, queries, asked, counted)], score_from=score_from)


def _stream(
    vectors: Float64,
    queries: Float64,
    asked: Ints,
    scored: npt.NDArray[np.bool_],
    need: Labels | None = None,
) -> Stream:
    """A stream whose scored queries need their exact ten nearest; the others are asked but need nothing."""
    exact: list[list[int]] = []
    for query, stop, counts in zip(queries, asked, scored, strict=True):
        nearest = np.argsort(-(vectors[:stop] @ query), kind="stable")[:K]
        exact.append(nearest.tolist() if counts else [])
    labels = Labels.from_lists(exact)
    return Stream(
        vectors=vectors.astype(np.float32),
        queries=queries.astype(np.float32),
        asked=asked.astype(np.int64),
        need=labels if need is None else need,
        exact=labels,
    )


def _noisy(rng: np.random.Generator, rows: Float64, length: float) -> Float64:
    """Unit rows (m, DIM) with noise of about this length added, as unit rows."""
    return _unit(rows + length * rng.standard_normal(rows.shape) / np.sqrt(DIM))


def _unit(rows: Float64) -> Float64:
    units: Float64 = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return units


SYNTHETIC: dict[str, Callable[[int], Trace]] = {
    "reference-like": reference_like,
    "drift": drift,
    "shift": shift,
    "off-topic": off_topic,
    "duplicate-storm": duplicate_storm,
    "fixation": fixation,
    "topics": topics,
}
