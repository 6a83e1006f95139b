"""The vectorised bootstrap against a dumb loop, and what it may say."""

from __future__ import annotations

import numpy as np
import pytest

from memsift.evaluation.cell import Parts
from memsift.evaluation.statistics import (
    averaged_parts,
    draws,
    figure,
    paired,
    unit_of,
    whole_streams,
)

STREAMS = Parts((0, 1, 2, 3, 4), (2, 4, 0, 3, 1), (0.5, 0.25, 0.0, 1.0, 0.0), (0,) * 5, (0.0,) * 5)
BETTER = STREAMS._replace(recall=(0.6, 0.5, 0.0, 1.0, 0.5))
BLOCKS = Parts((0, 0, 0, 1, 1), (2, 4, 0, 3, 1), (0.5, 0.25, 0.0, 1.0, 0.0), (1,) * 5, (0.2,) * 5)


def dumb(parts: Parts, taken: list[int]) -> float:
    """The figure of one draw, part by part: `taken` names parts, as often as they were drawn."""
    by_stream: dict[int, list[tuple[int, float]]] = {}
    for place, part in enumerate(taken):
        # A whole stream that is drawn twice counts as two streams.
        home = place if whole_streams(parts) else parts.stream[part]
        by_stream.setdefault(home, []).append((parts.scored[part], parts.recall[part]))
    means = []
    for found in by_stream.values():
        queries = sum(count for count, _ in found)
        if queries:
            means.append(sum(count * mean for count, mean in found) / queries)
    return sum(means) / len(means) if means else float("nan")


@pytest.mark.parametrize("parts", [STREAMS, BLOCKS])
def test_the_figure_is_the_mean_of_stream_means(parts):
    assert figure(parts, "recall") == pytest.approx(dumb(parts, [0, 1, 2, 3, 4]))


@pytest.mark.parametrize("ours", [BETTER, BLOCKS._replace(recall=(0.5, 0.5, 0.0, 0.9, 1.0))])
def test_every_draw_is_what_a_loop_over_its_parts_gives(ours):
    theirs = STREAMS if ours is BETTER else BLOCKS
    taken = draws(ours.stream, 200, 3)
    differences = []
    for row in taken:
        names = [part for part, times in enumerate(row) for _ in range(int(times))]
        differences.append(dumb(ours, names) - dumb(theirs, names))
    known = [d for d in differences if d == d]
    interval = paired(ours, theirs, resamples=200, seed=3)
    assert interval.low == pytest.approx(np.quantile(known, 0.025))
    assert interval.high == pytest.approx(np.quantile(known, 0.975))
    assert interval.value == pytest.approx(figure(ours, "recall") - figure(theirs, "recall"))


def test_streams_are_drawn_whole_and_blocks_within_their_stream():
    assert (unit_of(STREAMS), unit_of(BLOCKS)) == ("stream", "block")
    taken = draws(BLOCKS.stream, 500, 0)
    assert (taken[:, :3].sum(1) == 3).all()
    assert (taken[:, 3:].sum(1) == 2).all()
    assert (draws(STREAMS.stream, 500, 0).sum(1) == 5).all()
    assert draws(STREAMS.stream, 500, 0)[:, 0].max() > 1


def test_the_same_seed_draws_the_same():
    assert paired(BETTER, STREAMS) == paired(BETTER, STREAMS)
    assert paired(BETTER, STREAMS) != paired(BETTER, STREAMS, seed=1)


def test_what_is_better_in_every_stream_is_surely_above():
    ours = STREAMS._replace(recall=tuple(r + 0.1 for r in STREAMS.recall))
    interval = paired(ours, STREAMS)
    assert interval.above
    assert not interval.below
    assert interval.low == pytest.approx(0.1)
    assert paired(STREAMS, ours).below


def test_a_policy_against_itself_is_neither():
    interval = paired(STREAMS, STREAMS)
    assert (interval.value, interval.low, interval.high) == (0.0, 0.0, 0.0)
    assert not interval.above
    assert not interval.below


def test_without_labels_there_is_no_interval():
    interval = paired(STREAMS, STREAMS, "fidelity")
    assert interval.value != interval.value
    assert interval.low != interval.low
    assert not interval.above


def test_seeds_become_one_by_their_means():
    one, other = STREAMS, STREAMS._replace(recall=(0.7, 0.25, 0.0, 0.8, 0.2))
    mean = averaged_parts([one, other])
    assert mean.recall == pytest.approx((0.6, 0.25, 0.0, 0.9, 0.1))
    assert mean.scored == one.scored


@pytest.mark.parametrize("coverage", [0.95])
def test_an_interval_holds_the_truth_about_as_often_as_it_says(coverage):
    """Thirty streams of a known difference, many times over."""
    chance = np.random.default_rng(5)
    held = 0
    for trial in range(200):
        base = chance.uniform(0.2, 0.8, 30)
        gain = base + 0.05 + chance.normal(0, 0.1, 30)
        layout = tuple(range(30)), (10,) * 30
        theirs = Parts(*layout, tuple(base), (0,) * 30, (0.0,) * 30)
        ours = Parts(*layout, tuple(gain), (0,) * 30, (0.0,) * 30)
        interval = paired(ours, theirs, resamples=400, seed=trial)
        held += interval.low <= 0.05 <= interval.high
    assert coverage - 0.06 <= held / 200 <= 1.0
