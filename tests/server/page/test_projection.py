"""The map's axes against a singular value decomposition, and what they promise when little changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

projection = pytest.importorskip("memsift.server.page.projection", reason="needs memsift[mcp]")
fit, spread_evenly = projection.fit, projection.spread_evenly


def rows_of(seed: int, n: int, dim: int) -> np.ndarray:
    """Unit rows that differ most along two directions, less along the others."""
    rng = np.random.default_rng(seed)
    scale = np.r_[5.0, 3.0, np.full(max(dim - 2, 0), 0.4)][:dim]
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    rows = (rng.standard_normal((n, dim)) * scale + 1.0) @ turn
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@given(st.integers(0, 50), st.integers(3, 200), st.integers(3, 40))
@settings(max_examples=40, deadline=None)
def test_the_axes_are_those_of_a_singular_value_decomposition(seed: int, n: int, dim: int) -> None:
    rows = rows_of(seed, n, dim)
    axes = fit(rows)
    centred = rows - rows.mean(axis=0)
    values = np.linalg.svd(centred, compute_uv=False)
    best = float((values[:2] ** 2).sum() / (values**2).sum())
    seen = axes.places(rows)
    assert abs(axes.share - best) < 0.02
    assert abs(float((seen**2).sum() / (centred**2).sum()) - axes.share) < 1e-3
    assert np.allclose(axes.directions.T @ axes.directions, np.eye(2), atol=1e-5)
    largest = np.abs(axes.directions).argmax(axis=0)
    assert (axes.directions[largest, [0, 1]] > 0).all()


@given(st.integers(0, 20), st.integers(0, 4), st.integers(1, 4), st.booleans())
@settings(max_examples=60, deadline=None)
def test_few_or_equal_rows_have_a_map_too(seed: int, n: int, dim: int, equal: bool) -> None:
    rows = rows_of(seed, n, dim)
    if equal and n:
        rows[:] = rows[0]
    axes = fit(rows)
    assert axes.places(rows).shape == (n, 2)
    assert np.isfinite(axes.places(rows)).all()
    assert 0.0 <= axes.share <= 1.0


def test_the_same_rows_give_the_same_axes() -> None:
    rows = rows_of(1, 500, 64)
    first, second = fit(rows), fit(rows.copy())
    assert np.array_equal(first.directions, second.directions)
    shuffled = fit(rows[np.random.default_rng(0).permutation(500)])
    assert np.allclose(first.directions, shuffled.directions, atol=1e-3)


def test_a_new_map_is_turned_to_look_like_the_old_one() -> None:
    rows = rows_of(2, 400, 32)
    old = fit(rows)
    angle = 2.5
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    mirrored = old._replace(
        directions=(old.directions @ turn @ np.diag([1, -1])).astype(np.float32)
    )
    again = fit(np.vstack([rows, rows_of(2, 40, 32)]), like=mirrored)
    agree = (again.directions * mirrored.directions).sum(axis=0)
    assert (agree > 0.95).all()


@given(st.integers(0, 5_000), st.integers(2, 300))
def test_a_sample_is_even_and_has_both_ends(count: int, most: int) -> None:
    rows = spread_evenly(count, most)
    assert rows.size == min(count, most)
    assert np.unique(rows).size == rows.size
    if count:
        assert (rows[0], rows[-1]) == (0, count - 1)
        steps = np.diff(rows)
        assert rows.size < 2 or steps.max() - steps.min() <= 1
