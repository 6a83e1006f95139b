"""HashedNgrams: a vector for every text, alike everywhere, nearer for texts that share words."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsift.agent.embedders import HashedNgrams
from memsift.errors import InvalidValue

_PRINT_A_ROW = """
import hashlib
from memsift.agent.embedders import HashedNgrams
rows = HashedNgrams().embed(["the cat sat on the mat", "Zürich, naïve café", ""])
print(hashlib.sha256(rows.round(5).tobytes()).hexdigest())
"""


@given(st.lists(st.text(max_size=60), max_size=5), st.integers(2, 64))
def test_every_text_has_a_unit_row(texts: list[str], dim: int) -> None:
    rows = HashedNgrams(dim).embed(texts)
    assert rows.shape == (len(texts), dim)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-5)


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_row_depends_on_its_own_text_alone(text: str, other: str) -> None:
    embedder = HashedNgrams(32)
    alone, beside = embedder.embed([text])[0], embedder.embed([other, text])[1]
    np.testing.assert_array_equal(alone, beside)


@pytest.mark.parametrize("text", ["", "  \n", "+++", "🙂"])
def test_a_text_without_words_is_hashed_whole(text: str) -> None:
    row = HashedNgrams().embed([text])[0]
    assert np.count_nonzero(row) == 1


def test_a_lone_surrogate_is_a_text_too() -> None:
    assert np.isfinite(HashedNgrams().embed(["bad \udc80 byte", "\udc80"])).all()


def test_shared_words_and_shared_pieces_bring_texts_together() -> None:
    rows = HashedNgrams().embed(
        ["evict the oldest entry", "which entry is evicted", "a recipe for plum cake"]
    )
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2


def test_word_order_counts_a_little() -> None:
    told, turned = HashedNgrams().embed(["dog bites man", "man bites dog"])
    assert 0.8 < told @ turned < 0.99


def test_identifiers_are_made_of_words() -> None:
    name, words, other = HashedNgrams().embed(["read_text", "read text", "write bytes"])
    assert name @ words > 0.99 > 0.5 > name @ other


def test_function_words_say_less() -> None:
    plain, padded, other = HashedNgrams().embed(
        ["budget store", "the budget of the store", "the price of the house"]
    )
    assert plain @ padded > 0.7
    assert padded @ other < 0.4


def test_rows_do_not_depend_on_the_seed_of_the_process() -> None:
    prints = [
        subprocess.run(
            [sys.executable, "-c", _PRINT_A_ROW],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    ]
    assert prints[0] == prints[1]


def test_buckets_and_signs_are_pinned() -> None:
    """Stored traces rely on them: a change here changes every trace made from text."""
    row = HashedNgrams(16).embed(["evict"])[0]
    expected = [
        0.2357,
        0.0000,
        0.0000,
        0.0000,
        0.0000,
        0.0000,
        0.0000,
        0.0000,
        -0.4714,
        -0.2357,
        0.2357,
        0.0000,
        0.2357,
        0.0000,
        -0.7071,
        -0.2357,
    ]
    np.testing.assert_allclose(row, expected, atol=1e-4)


def test_two_thousand_passages_take_seconds_at_most() -> None:
    words = [f"word{i}" for i in range(3000)]
    chance = np.random.default_rng(0)
    texts = [" ".join(chance.choice(words, 40)) for _ in range(2000)]
    start = time.process_time()
    HashedNgrams().embed(texts)
    assert time.process_time() - start < 5  # about 0.5 s; the rest is for slow machines


def test_dim_is_checked() -> None:
    with pytest.raises(InvalidValue, match="dim of HashedNgrams must be 2 or more; got 1"):
        HashedNgrams(1)
