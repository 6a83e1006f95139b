"""Vectors for text without a model: the hashing trick over words, word pairs and word pieces."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from memsift.agent.embedders.base import EXACT_ONLY, FloatRows, several
from memsift.errors import InvalidValue

# Part of the fingerprint: another number for other rows.
_VERSION = 1

# Underscores part words, so that `read_text` shares words with "read the text".
_WORD = re.compile(r"[^\W_]+")

# Chosen for keep-everything recall on the workload of `readers.manual`, which is flat around them.
_BIGRAM = 0.25
_FUNCTION_WORD = 0.3
_PIECE_LENGTHS = (3, 4)

# Pieces of longer runs (base64, minified code) say nothing and cost time.
_LONGEST_WORD = 64

_FUNCTION_WORDS = frozenset(
    _WORD.findall("""
        a an and are as at be been but by can do does for from had has have he her his how i if in
        into is it its may more no not of on one only or other our she so such than that the their
        them then there these they this to up was we were what when where which who will with would
        you your
    """)
)


@dataclass(frozen=True)
class HashedNgrams:
    """Hashed words, word bigrams and character 3- and 4-grams (the hashing trick).

    Every n-gram falls into one of `dim` buckets with a sign, both taken from its CRC-32, so two
    texts are close when they share words, parts of words or word order. Repeats count
    `1 + ln(count)`; function words count less.

    This is a weak embedder: it knows no synonyms, and unrelated n-grams collide. It exists so that
    traces can be made offline with numpy alone, alike on every machine. Use a trained model for
    anything else. A word changed in a long text moves a row by less than a comma in a short one:
    no cosine is a near duplicate's (`docs/embedders.md`).

    Parameters
    ----------
    dim : int, default 512
        Number of buckets, 2 or more.

    References
    ----------
    K. Weinberger, A. Dasgupta, J. Langford, A. Smola, J. Attenberg: Feature Hashing for Large Scale
    Multitask Learning. ICML 2009.
    """

    dim: int = 512

    near_duplicate: ClassVar[float] = EXACT_ONLY

    @property
    def fingerprint(self) -> str:
        """`hashed-ngrams@1/512`: the kind, its version, the number of buckets."""
        return f"hashed-ngrams@{_VERSION}/{self.dim}"

    def __post_init__(self) -> None:
        if self.dim < 2:
            raise InvalidValue(f"dim of HashedNgrams must be 2 or more; got {self.dim!r}")

    def embed(self, texts: Sequence[str]) -> FloatRows:
        """One row per text: (n, dim) float32, unit rows.

        A text without a letter or digit, the empty one included, is hashed whole: its row is one
        bucket. So every text has a direction, and equal texts have equal rows.
        """
        several(texts)
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            total = _sum_of(_features(text, self.dim), self.dim)
            # Not by BLAS, whose sums end in other bits on other machines.
            length = math.sqrt(math.fsum((total * total).tolist()))
            # Few buckets can cancel a text out entirely; it then counts as one without n-grams.
            if length < 1e-6:
                total = _sum_of([(_hashed(text, self.dim), 1.0)], self.dim)
                length = 1.0
            row[:] = total / length
        return rows


class _Feature:
    """N-grams that always come together: their buckets and signed weights."""

    __slots__ = ("buckets", "weights")

    def __init__(self, grams: Iterable[tuple[str, float]], dim: int) -> None:
        buckets, weights = [], []
        for gram, weight in grams:
            code = zlib.crc32(gram.encode("utf-8", "surrogatepass"))
            # The lowest bit is the sign; the bucket comes from the others, to be independent of it.
            buckets.append((code >> 1) % dim)
            weights.append(weight if code & 1 else -weight)
        self.buckets = np.array(buckets, np.int64)
        self.weights = np.array(weights, np.float64)


def _features(text: str, dim: int) -> list[tuple[_Feature, float]]:
    """The features of a text, each with its damped count."""
    words = _WORD.findall(text.lower())
    unigrams = ((_word(word, dim), n) for word, n in Counter(words).items())
    bigrams = ((_bigram(*pair, dim), n) for pair, n in Counter(pairwise(words)).items())
    return [(feature, 1.0 + math.log(n)) for group in (unigrams, bigrams) for feature, n in group]


def _sum_of(features: list[tuple[_Feature, float]], dim: int) -> npt.NDArray[np.float64]:
    """(dim,) float64: the weighted sum of features, not normalised."""
    if not features:
        return np.zeros(dim)
    buckets = np.concatenate([feature.buckets for feature, _ in features])
    weights = np.concatenate([feature.weights * count for feature, count in features])
    total: npt.NDArray[np.float64] = np.bincount(buckets, weights, minlength=dim).astype(np.float64)
    return total


def _importance(word: str) -> float:
    return _FUNCTION_WORD if word in _FUNCTION_WORDS else 1.0


# A vocabulary is small beside the texts made of it: hashing each word once makes embedding fast.
@lru_cache(maxsize=1 << 16)
def _word(word: str, dim: int) -> _Feature:
    """A word and its pieces; all pieces together weigh as much as the word."""
    marked = f"<{word[:_LONGEST_WORD]}>"
    pieces = [marked[i : i + n] for n in _PIECE_LENGTHS for i in range(len(marked) - n + 1)]
    weight = _importance(word)
    share = weight / math.sqrt(len(pieces))
    return _Feature([(f"word {word}", weight), *((f"piece {p}", share) for p in pieces)], dim)


@lru_cache(maxsize=1 << 16)
def _bigram(first: str, second: str, dim: int) -> _Feature:
    weight = _BIGRAM * math.sqrt(_importance(first) * _importance(second))
    return _Feature([(f"pair {first} {second}", weight)], dim)


def _hashed(text: str, dim: int) -> _Feature:
    return _Feature([(f"text {text}", 1.0)], dim)
