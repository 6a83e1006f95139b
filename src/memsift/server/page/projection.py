"""A map of a memory: its rows on a plane, by the two directions in which they differ most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

# Directions that are searched for together: the two leading ones come clear of the others in few steps.
BLOCK, STEPS = 8, 12


class Axes(NamedTuple):
    """Where a map's origin lies, (dim,), its two directions, (dim, 2), and the share of the spread that they show."""

    mean: Float32
    directions: Float32
    share: float

    def places(self, rows: Float32) -> Float32:
        """Coordinates of (n, dim) rows: (n, 2)."""
        return ((rows - self.mean) @ self.directions).astype(np.float32)


def fit(rows: Float32, like: Axes | None = None) -> Axes:
    """The axes of a map of (n, dim) rows: the leading two directions of principal component analysis.

    The same rows give the same axes. A direction's sign means nothing, so it is fixed by rule: the largest
    coordinate is positive, or, after a map that was shown before, the map is turned to look `like` it.
    """
    n, dim = rows.shape
    mean: Float32 = rows.mean(axis=0) if n else np.zeros(dim, np.float32)
    centred = (rows - mean).astype(np.float64)
    spread = float(np.einsum("ij,ij->", centred, centred))
    if spread < 1e-12 or dim < 2:
        plain = np.zeros((dim, 2), np.float32)
        plain[: min(dim, 2), : min(dim, 2)] = np.eye(min(dim, 2))
        return Axes(mean, plain, 1.0 if n else 0.0)
    basis = np.random.default_rng(0).standard_normal((dim, min(BLOCK, dim)))
    for _ in range(STEPS):
        basis = np.linalg.qr(centred.T @ (centred @ basis))[0]
    seen = centred @ basis
    values, turn = np.linalg.eigh(seen.T @ seen)
    directions = (basis @ turn[:, ::-1])[:, :2]
    share = float(values[::-1][:2].sum()) / spread
    directions = _upright(directions) if like is None else _turned(directions, like.directions)
    return Axes(mean, directions.astype(np.float32), min(1.0, share))


def _upright(directions: Float64) -> Float64:
    largest = np.abs(directions).argmax(axis=0)
    signs = np.where(directions[largest, [0, 1]] < 0, -1.0, 1.0)
    upright: Float64 = directions * signs
    return upright


def _turned(directions: Float64, before: Float32) -> Float64:
    """The same plane, turned or mirrored to lie as nearly as possible as it did before (orthogonal Procrustes)."""
    left, _, right = np.linalg.svd(directions.T @ before.astype(np.float64))
    turned: Float64 = directions @ (left @ right)
    return turned


def spread_evenly(count: int, most: int) -> npt.NDArray[np.intp]:
    """At most `most` of `count` rows, evenly spread, ascending."""
    if count <= most:
        return np.arange(count)
    return np.linspace(0, count - 1, most).round().astype(np.intp)
