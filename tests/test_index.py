"""The exact index, over the least that it needs to see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from memsift import kernels
from memsift.index import ExactIndex
from memsift.testing import IndexTests
from memsift.testing.index import brute_force, unit


@dataclass
class Rows:
    """Vectors and ids that may be replaced, as a table's are."""

    vectors: Any
    ids: Any

    def column(self, name: str) -> Any:
        assert name == "ids"
        return self.ids


class TestExactIndex(IndexTests):
    def make(self, vectors: Any, ids: Any) -> ExactIndex:
        return ExactIndex(Rows(vectors, ids))


class TestExactIndexOfOneDimension(TestExactIndex):
    """Every cosine is 1 or -1, so that ids decide nearly everything."""

    dim = 1

    def test_the_entry_itself_comes_first_at_a_score_of_one(self) -> None:
        vectors, ids = self.memory(300)
        rows, scores = self.make(vectors, ids).search(vectors[0], 1)
        assert ids[rows[0]] == ids[vectors[:, 0] == vectors[0, 0]].min()
        assert scores[0] == 1.0


class TestExactIndexBeyondTheCache(TestExactIndex):
    """Wide enough that the larger sizes of the suite take the other way through `scan`."""

    dim = 640


def test_the_table_may_grow_and_shrink_under_the_index() -> None:
    rng = np.random.default_rng(0)
    vectors, ids = unit(rng.normal(size=(6000, 16))), rng.permutation(6000)
    table = Rows(vectors[:0], ids[:0])
    index = ExactIndex(table)
    for n in (0, 1, 64, 65, 300, 6000, 4001, 64, 2, 0, 700):
        table.vectors, table.ids = vectors[:n], ids[:n]
        for query in unit(rng.normal(size=(2, 16))):
            rows, scores = index.search(query, 10)
            assert (rows.tolist(), scores.tolist()) == brute_force(
                table.vectors, table.ids, query, 10
            )


@pytest.mark.parametrize("n", [1, 63, 64, 65, 4097])
def test_a_caller_s_buffer_receives_all_similarities(n: int) -> None:
    rng = np.random.default_rng(n)
    vectors, query = unit(rng.normal(size=(n, 16))), unit(rng.normal(size=16))
    out = np.full(kernels.padded(n) + 128, kernels.ABSENT, np.float32)
    ExactIndex(Rows(vectors, np.arange(n))).search(query, 3, out=out)
    np.testing.assert_allclose(out[:n], vectors @ query, atol=kernels.NOISE)
    assert (out[n:] == kernels.ABSENT).all()


@pytest.mark.parametrize("last", [0, 1, 5, 8, 9, 50])
@pytest.mark.parametrize("batch", [1, 2, 4, 128])
@pytest.mark.parametrize("masked", [0.0, 0.6, 0.97])
def test_a_batch_is_its_queries_one_by_one_and_hands_over_the_last_similarities(
    last: int, batch: int, masked: float
) -> None:
    rng = np.random.default_rng(1)
    vectors, queries = unit(rng.normal(size=(300, 16))), unit(rng.normal(size=(9, 16)))
    vectors[40:60] = vectors[250:270]  # the same entry in two tiles
    mask = rng.random(300) >= masked if masked else None
    index = ExactIndex(Rows(vectors, rng.permutation(300)))
    index.BATCH, index.BATCH_SCORES = batch, 130 * batch  # tiles of 130 rows
    found, similarities = index.search_many(queries, 4, mask, last=last)
    assert len(found) == 9
    for query, (rows, scores) in zip(queries, found, strict=True):
        alone = index.search(query, 4, mask)
        assert rows.tolist() == alone[0].tolist()
        assert scores.tolist() == alone[1].tolist()
    assert similarities.shape == (min(last, 9), 300)
    np.testing.assert_allclose(
        similarities, queries[9 - len(similarities) :] @ vectors.T, atol=kernels.NOISE
    )


def test_a_batch_of_no_queries_finds_nothing() -> None:
    vectors = unit(np.eye(4))
    found, similarities = ExactIndex(Rows(vectors, np.arange(4))).search_many(
        vectors[:0], 2, last=3
    )
    assert found == []
    assert similarities.shape == (0, 4)
