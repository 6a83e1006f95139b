"""The measurement of the HNSW index, on a memory small enough for a test: what it says, not how fast that was."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from memsift.evaluation.speed.hnsw import clustered, rows

pytest.importorskip("usearch", reason="needs memsift[ann]")


def test_four_rows_tell_of_every_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    # An old graph goes in a lull, or after this: the waiting searches leave none.
    monkeypatch.setattr("memsift.index.hnsw.search.PATIENCE_SECONDS", 0.2)
    found = [row.to_dict() for row in rows(2000, 16, 2)]
    assert [row["operation"] for row in found] == [
        "hnsw search",
        "hnsw search, half dead",
        "hnsw search, rebuilt",
        "hnsw wait for a rebuild",
    ]
    assert [row["n"] for row in found] == [2000, 1000, 2000, 2000]
    for row in found:
        json.dumps(row, allow_nan=False)
        assert row["low_us"] <= row["ours_us"] <= row["high_us"]
        assert row["ratio"] == pytest.approx(row["ours_us"] / row["primitives_us"], rel=0.05)
    for row in found[:3]:
        (recall,) = re.findall(r"worst (\d\.\d+)", row["limit"])
        assert 0.9 <= float(recall) <= 1.0
        holds = row["ours_us"] <= 200 and float(recall) >= float(
            re.findall(r"at least (\d\.\d+)", row["limit"])[0]
        )
        assert row["holds"] == holds


@pytest.mark.parametrize("uneven", [False, True])
def test_queries_are_of_the_entries_kind(uneven: bool) -> None:
    vectors = clustered(3000, 64, uneven=uneven)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    products = vectors[:50] @ vectors[50:].T
    assert (products.max(1) > 0.3).all()
    assert abs(np.median(products)) < 0.05
