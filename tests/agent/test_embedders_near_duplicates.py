"""From which cosine do two texts say the same? From none: what `docs/embedders.md` says of that is measured anew."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pairs
import pytest

from memsift.agent.embedders import Embedder, files, minilm, near_duplicate, parse, wordllama

PAGE = Path(__file__).parents[2] / "docs" / "embedders.md"
AVAILABLE = {
    "hashed": True,
    "wordllama": wordllama.installed(),
    "minilm": not files.missing(minilm.PACKAGES),
}
every_embedder = pytest.mark.parametrize(
    "spec",
    [
        pytest.param(s, marks=[] if here else pytest.mark.skip("its extra is not installed"))
        for s, here in AVAILABLE.items()
    ],
)


def cosines(embedder: Embedder, some: pairs.Pairs) -> npt.NDArray[np.float64]:
    left, right = (embedder.embed([pair[side] for pair in some]) for side in (0, 1))
    return np.vecdot(left.astype(np.float64), right.astype(np.float64))


def within_long_texts(some: pairs.Pairs) -> pairs.Pairs:
    """The same pairs, each amid the same eleven other sentences."""
    sentences = [left for left, _ in pairs.REWORDED]
    out = []
    for i, pair in enumerate(some):
        around = [sentences[(7 * i + j) % len(sentences)] for j in range(1, 12)]
        left, right = (" ".join([*around[:5], said, *around[5:]]) for said in pair)
        out.append((left, right))
    return out


def rows_of_the_page() -> dict[str, list[float]]:
    text = PAGE.read_text()
    table = re.findall(r"^\| `(\w+)` \|((?: [\d.-]+ \|){6})$", text, re.MULTILINE)
    return {name: [float(x) for x in cells.split("|")[:-1]] for name, cells in table}


def test_there_are_forty_pairs_of_each_kind() -> None:
    kinds = [pairs.RETOUCHED, pairs.REWORDED, pairs.CHANGED, pairs.UNRELATED]
    assert [len(kind) for kind in kinds] == [40] * 4
    assert all(left != right for kind in kinds for left, right in kind)


@every_embedder
def test_what_says_something_else_is_never_taken_for_the_same(spec: str) -> None:
    embedder = parse(spec)
    for some in (pairs.CHANGED, pairs.UNRELATED, within_long_texts(pairs.CHANGED)):
        assert cosines(embedder, some).max() < near_duplicate(embedder)


@every_embedder
def test_no_threshold_would_do_better(spec: str) -> None:
    """A threshold above all pairs that say something else leaves next to nothing of what says the same."""
    embedder = parse(spec)
    others = cosines(embedder, within_long_texts(pairs.CHANGED)).max()
    same = cosines(embedder, pairs.RETOUCHED)
    assert others > 0.999
    assert others > np.median(same)


@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs beside it")
@every_embedder
def test_the_page_says_what_is_measured(spec: str) -> None:
    embedder = parse(spec)
    retouched, reworded = (cosines(embedder, some) for some in (pairs.RETOUCHED, pairs.REWORDED))
    changed, long = (
        cosines(embedder, some) for some in (pairs.CHANGED, within_long_texts(pairs.CHANGED))
    )
    unrelated = cosines(embedder, pairs.UNRELATED)
    measured = [
        np.median(retouched),
        np.median(reworded),
        np.median(changed),
        changed.max(),
        long.max(),
        unrelated.max(),
    ]
    np.testing.assert_allclose(rows_of_the_page()[spec], measured, atol=0.0011)
