"""What every index must hold."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Scores are cosines rounded to this many decimals.
DECIMALS = 9
# Sizes on either side of what kernels work in: lanes of 64, blocks of thousands.
SIZES = (1, 2, 63, 64, 65, 127, 640, 4001, 4097)


class Index(Protocol):
    """What the suite asks of an index. One that also has `search_many` is asked that as well."""

    def search(self, query: Floats, k: int, mask: Mask | None = None) -> tuple[Any, Any]: ...


def unit(vectors: npt.ArrayLike) -> Floats:
    """Unit float32 rows."""
    wide = np.asarray(vectors, dtype=np.float64)
    rows: Floats = (wide / np.linalg.norm(wide, axis=-1, keepdims=True)).astype(np.float32)
    return rows


def brute_force(
    vectors: Floats, ids: Ids, query: Floats, k: int, mask: Mask | None = None
) -> tuple[list[int], list[float]]:
    """The best k rows in float64, by score and then by ascending id, with their scores."""
    scores = vectors.astype(np.float64) @ query.astype(np.float64)
    scores = np.clip(scores.round(DECIMALS), -1.0, 1.0)
    allowed = range(len(ids)) if mask is None else np.flatnonzero(mask).tolist()
    best = sorted(allowed, key=lambda row: (-scores[row], ids[row]))[:k]
    return best, scores[best].tolist()


class IndexTests:
    """Inherit, and say how an index is made.

    Attributes
    ----------
    recall : float in (0, 1]
        The least share of the true best k that a search must find. At 1, the default, the answers must be the true
        ones, ties included; below, whatever is found must still be true, in order and allowed.
    dim : int
    """

    recall: ClassVar[float] = 1.0
    dim: ClassVar[int] = 16

    def make(self, vectors: Floats, ids: Ids) -> Index:
        """An index over unit rows `vectors` (n, dim) whose entries have the `ids` (n,), all different."""
        raise NotImplementedError("a subclass says how its index is made")

    def memory(self, n: int, seed: int = 0) -> tuple[Floats, Ids]:
        """Rows of n entries and their ids, in no order."""
        rng = np.random.default_rng(seed)
        return unit(rng.normal(size=(n, self.dim))).reshape(n, self.dim), rng.permutation(n) * 2 + 5

    def queries(self, count: int, seed: int = 1) -> Floats:
        return unit(np.random.default_rng(seed).normal(size=(count, self.dim)))

    def check(
        self,
        found: tuple[Any, Any],
        vectors: Floats,
        ids: Ids,
        query: Floats,
        k: int,
        mask: Mask | None = None,
    ) -> None:
        """Hold one answer against brute force."""
        rows, scores = np.asarray(found[0]), np.asarray(found[1])
        best, true = brute_force(vectors, ids, query, k, mask)
        assert rows.dtype.kind == "i"
        assert rows.shape == scores.shape
        assert len(set(rows.tolist())) == rows.size, "a row came twice"
        if self.recall == 1.0:
            assert rows.tolist() == best
            assert scores.tolist() == true
            return
        assert rows.size <= len(best)
        assert mask is None or mask[rows].all()
        everything = dict(zip(*brute_force(vectors, ids, query, len(ids)), strict=True))
        assert scores.tolist() == [everything[row] for row in rows.tolist()]
        order = sorted(rows.tolist(), key=lambda row: (-everything[row], ids[row]))
        assert rows.tolist() == order
        assert len(set(best) & set(rows.tolist())) >= self.recall * len(best)

    # ---- order -----------------------------------------------------------------------------------------------

    def test_the_best_come_first(self) -> None:
        for n in SIZES:
            vectors, ids = self.memory(n, seed=n)
            index = self.make(vectors, ids)
            for query in self.queries(3, seed=n):
                for k in (1, 10):
                    self.check(index.search(query, k), vectors, ids, query, k)

    def test_the_entry_itself_comes_first_at_a_score_of_one(self) -> None:
        vectors, ids = self.memory(300)
        index = self.make(vectors, ids)
        for row in (0, 150, 299):
            rows, scores = index.search(vectors[row], 1)
            assert rows.tolist() == [row]
            assert abs(float(scores[0]) - 1.0) < 1e-6

    def test_equal_scores_come_by_ascending_id(self) -> None:
        """A hundred entries say the same; their ids fall while their rows rise."""
        query = self.queries(1)[0]
        for others in (0, 500, 5000):
            vectors, _ = self.memory(100 + others)
            vectors[:100] = query
            ids = np.arange(100 + others)[::-1].copy()
            index = self.make(vectors, ids)
            for k in (1, 10, 99, 100):
                rows, scores = index.search(query, k)
                self.check((rows, scores), vectors, ids, query, k)
                assert ids[rows].tolist() == sorted(ids[rows].tolist())
                assert len(set(np.asarray(scores).tolist())) == 1

    def test_entries_that_float32_cannot_tell_apart_come_in_their_true_order(self) -> None:
        rng = np.random.default_rng(3)
        query = self.queries(1)[0]
        for n in (200, 5000):
            vectors = unit(query + 1e-4 * rng.normal(size=(n, self.dim)))
            ids = rng.permutation(n)
            index = self.make(vectors, ids)
            for k in (1, 5, 50):
                self.check(index.search(query, k), vectors, ids, query, k)

    # ---- scores ----------------------------------------------------------------------------------------------

    def test_scores_are_cosines_within_one_rounded_to_nine_decimals(self) -> None:
        vectors, ids = self.memory(200)
        vectors[:20] = unit(np.ones((20, self.dim)))
        vectors[20:40] = -vectors[:20]
        index = self.make(vectors, ids)
        for query in (vectors[0], *self.queries(3)):
            scores = np.asarray(index.search(query, 200)[1])
            assert scores.dtype == np.float64
            assert ((scores >= -1.0) & (scores <= 1.0)).all()
            assert (scores == scores.round(DECIMALS)).all()

    def test_entries_that_all_point_away_are_still_found(self) -> None:
        query = self.queries(1)[0]
        rng = np.random.default_rng(5)
        for n in (1, 64, 100, 4100):
            vectors = unit(-query + 0.05 * rng.normal(size=(n, self.dim)))
            ids = rng.permutation(n)
            rows, scores = self.make(vectors, ids).search(query, 7)
            self.check((rows, scores), vectors, ids, query, 7)
            assert (np.asarray(scores) < 0).all()

    # ---- how many --------------------------------------------------------------------------------------------

    def test_an_empty_index_finds_nothing(self) -> None:
        vectors, ids = self.memory(0)
        index = self.make(vectors, ids)
        for mask in (None, np.zeros(0, np.bool_)):
            rows, scores = index.search(self.queries(1)[0], 5, mask)
            assert len(rows) == len(scores) == 0

    def test_more_than_there_are_gives_all(self) -> None:
        query = self.queries(1)[0]
        for n in (1, 2, 63, 64, 65, 640):
            vectors, ids = self.memory(n)
            index = self.make(vectors, ids)
            for k in (n, n + 1, 10 * n + 100):
                self.check(index.search(query, k), vectors, ids, query, k)

    # ---- masks -----------------------------------------------------------------------------------------------

    def test_only_allowed_rows_are_found(self) -> None:
        for n in (10, 65, 4097):
            vectors, ids = self.memory(n, seed=n)
            index = self.make(vectors, ids)
            query = self.queries(1, seed=n)[0]
            for share in (0.01, 0.3, 0.95):
                mask = np.random.default_rng(n).random(n) < share
                for k in (1, 10, n):
                    self.check(index.search(query, k, mask), vectors, ids, query, k, mask)

    def test_a_mask_of_the_worst_rows_finds_the_best_of_them(self) -> None:
        vectors, ids = self.memory(4097)
        query = self.queries(1)[0]
        scores = vectors @ query
        for allowed in (3, 1500):
            mask = scores <= np.sort(scores)[allowed]
            found = self.make(vectors, ids).search(query, 5, mask)
            self.check(found, vectors, ids, query, 5, mask)

    def test_a_mask_that_allows_nothing_finds_nothing(self) -> None:
        for n in (1, 100, 4097):
            vectors, ids = self.memory(n)
            found = self.make(vectors, ids).search(self.queries(1)[0], 5, np.zeros(n, np.bool_))
            assert len(found[0]) == len(found[1]) == 0

    def test_a_mask_that_allows_all_changes_nothing(self) -> None:
        vectors, ids = self.memory(700)
        index = self.make(vectors, ids)
        for query in self.queries(3):
            rows, scores = index.search(query, 10, np.ones(700, np.bool_))
            plain = index.search(query, 10)
            assert rows.tolist() == plain[0].tolist()
            assert scores.tolist() == plain[1].tolist()

    # ---- purity ----------------------------------------------------------------------------------------------

    def test_a_search_changes_nothing(self) -> None:
        vectors, ids = self.memory(500)
        index = self.make(vectors, ids)
        before = vectors.tobytes(), ids.tobytes()
        query, other = self.queries(2)
        mask = np.arange(500) % 3 == 0
        first = index.search(query, 10)
        index.search(other, 300, mask)
        again = index.search(query, 10)
        assert first[0].tolist() == again[0].tolist()
        assert first[1].tolist() == again[1].tolist()
        assert (vectors.tobytes(), ids.tobytes()) == before
        assert mask.sum() == 167

    # ---- batches ---------------------------------------------------------------------------------------------

    def test_a_batch_is_the_same_as_its_queries_one_by_one(self) -> None:
        for n in (0, 1, 65, 640, 4097):
            vectors, ids = self.memory(n, seed=n)
            index = self.make(vectors, ids)
            search_many = getattr(index, "search_many", None)
            if search_many is None:
                return
            queries = self.queries(9, seed=n)
            for mask in (None, np.arange(n) % 3 == 0):
                found = search_many(queries, 10, mask)
                found = found[0] if isinstance(found, tuple) else found
                assert len(found) == len(queries)
                for query, (rows, scores) in zip(queries, found, strict=True):
                    single = index.search(query, 10, mask)
                    assert rows.tolist() == single[0].tolist()
                    assert scores.tolist() == single[1].tolist()
