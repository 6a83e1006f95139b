"""The Merkle root over evicted ids, against a slow model written from the definition."""

from __future__ import annotations

import hashlib
import hmac
import random
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsift.audit import commitment, evicted_commitment
from memsift.audit.commitment import EMPTY, Proof, check, proof
from memsift.errors import InvalidType, InvalidValue, UnknownEntry

KEY = b"k" * 32


def model(key: bytes, ids: list[int]) -> bytes:
    """RFC 6962, 2.1, as it stands there."""
    n = len(ids)
    if n == 0:
        return hashlib.sha256(b"").digest()
    if n == 1:
        leaf = hmac.new(key, ids[0].to_bytes(8, "little"), hashlib.sha256).digest()
        return hashlib.sha256(b"\x00" + leaf).digest()
    k = 1
    while k * 2 < n:
        k *= 2
    return hashlib.sha256(b"\x01" + model(key, ids[:k]) + model(key, ids[k:])).digest()


PINNED = {
    0: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    1: "d8090869226b6b5be8cc6c44947b262e9117d5d39989dac38c7f98562b4822c4",
    2: "0c4521a9bdac4604163882ed6729e404fb1076830090bdeb4af1f7cff4bcf79a",
    3: "eee6c23b280ddf7af8d6b632cf6fd4551418a5c5720b49fc3b02c940f3043585",
    7: "9787b4260c38dc390ebc2c5167f30bdf43971646ec1d8ac6cb0cc1a734ea5ba8",
    100: "9a20fe20ab4c006121becb31656938dc4d5f5d5cd140edc6df4ea4b39a568943",
}


@pytest.mark.parametrize("n", PINNED)
def test_pinned_roots(n):
    ids = [10 * i for i in range(n)]
    assert model(KEY, ids).hex() == PINNED[n]
    assert evicted_commitment(KEY, ids) == PINNED[n]


def test_all_small_sizes_equal_the_model():
    for n in range(70):
        ids = [3 * i + 1 for i in range(n)]
        assert evicted_commitment(KEY, ids) == model(KEY, ids).hex()


@settings(max_examples=150, deadline=None)
@given(
    st.sets(st.integers(0, 2**63 - 1), max_size=40),
    st.binary(min_size=16, max_size=64),
    st.randoms(),
)
def test_any_ids_in_any_order_equal_the_model(ids, key, rng):
    shuffled = list(ids)
    rng.shuffle(shuffled)
    root = evicted_commitment(key, shuffled)
    assert root == model(key, sorted(ids)).hex()
    if ids:
        chosen = rng.choice(shuffled)
        shown = proof(key, shuffled, chosen)
        assert check(root, len(ids), key, chosen, shown)
        assert len(shown.path) <= 6


def test_every_id_of_every_small_size_can_be_proved_and_no_other():
    for n in range(1, 34):
        ids = list(range(0, 5 * n, 5))
        root = evicted_commitment(KEY, ids)
        for id_ in ids:
            shown = proof(KEY, ids, id_)
            assert check(root, n, KEY, id_, shown)
            assert not check(root, n, KEY, id_ + 1, shown)
            assert not check(root, n, b"K" * 32, id_, shown)
            assert not check(root, n + 1, KEY, id_, shown)
            assert not check(evicted_commitment(KEY, [*ids, 999]), n, KEY, id_, shown)


def test_tampered_proofs_fail():
    ids = list(range(100, 177))
    root, rng = evicted_commitment(KEY, ids), random.Random(5)
    for _ in range(500):
        id_ = rng.choice(ids)
        good = proof(KEY, ids, id_)
        path = list(good.path)
        at = rng.randrange(len(path))
        bad = rng.choice(
            [
                replace(good, index=rng.choice([i for i in range(-1, 80) if i != good.index])),
                replace(good, path=good.path[:-1]),
                replace(good, path=()),
                replace(good, path=(*good.path, "0" * 64)),
                replace(good, path=(*path[:at], "f" * 64, *path[at + 1 :])),
                replace(good, path=(*path[:at], "nonsense", *path[at + 1 :])),
                replace(good, size=76),
            ]
        )
        assert not check(root, 77, KEY, id_, bad)
    assert not check("nonsense", 77, KEY, 100, proof(KEY, ids, 100))
    assert not check(EMPTY, 0, KEY, 100, Proof(0, 0, ()))


def test_an_inner_node_is_no_leaf():
    one, two = evicted_commitment(KEY, [1]), evicted_commitment(KEY, [2])
    inner = hashlib.sha256(b"\x00" + bytes.fromhex(one) + bytes.fromhex(two)).hexdigest()
    assert inner != evicted_commitment(KEY, [1, 2])


def test_numpy_ids_and_others():
    ids = np.array([9, 4, 7], dtype=np.int64)
    assert evicted_commitment(KEY, ids) == evicted_commitment(KEY, [4, 7, 9])
    assert evicted_commitment(KEY, iter(ids)) == evicted_commitment(KEY, (i for i in (4, 9, 7)))
    with pytest.raises(UnknownEntry):
        proof(KEY, [4, 7, 9], 5)


@pytest.mark.parametrize("ids", [[-1], [2**63], [1, 1], [2**64, 1]])
def test_ids_out_of_range_or_repeated_are_refused(ids):
    with pytest.raises(InvalidValue, match="ids must"):
        evicted_commitment(KEY, ids)


@pytest.mark.parametrize("ids", [["a"], [1.0], [None], "12"])
def test_ids_of_another_type_are_refused(ids):
    with pytest.raises(InvalidType, match="ids must be integers"):
        evicted_commitment(KEY, ids)


@pytest.mark.parametrize("key", [b"", b"short", b"k" * 65, "k" * 32, None])
def test_a_key_that_is_none_is_refused_and_not_shown(key):
    with pytest.raises(InvalidValue, match="key must be 16 to 64 bytes") as caught:
        evicted_commitment(key, [1])
    assert "kkk" not in str(caught.value)


def test_digests_are_keyed_and_apart():
    digest = hashlib.sha256(b"state").hexdigest()
    queries = np.arange(8, dtype=np.float32).reshape(2, 4)
    seen = {
        commitment.sealed(KEY, digest),
        commitment.sealed(b"K" * 32, digest),
        commitment.context_digest(KEY, queries),
        commitment.context_digest(b"K" * 32, queries),
        commitment.context_digest(KEY, queries.reshape(4, 2)),
        commitment.context_digest(KEY, queries[::-1]),
        commitment.context_digest(KEY, queries[:1]),
        digest,
    }
    assert len(seen) == 8
    strided = np.asfortranarray(queries)
    assert commitment.context_digest(KEY, strided) == commitment.context_digest(KEY, queries)
    assert commitment.context_digest(KEY, queries[:0]) is None
    for bad in (queries.astype(np.float64), queries[0]):
        with pytest.raises(InvalidType, match="context must be"):
            commitment.context_digest(KEY, bad)
    for bad in ("short", None, digest.upper()):
        with pytest.raises(InvalidValue, match="digest must be"):
            commitment.sealed(KEY, bad)


def test_a_hundred_thousand_ids_are_quick():
    began = time.perf_counter()
    root = evicted_commitment(KEY, range(100_000))
    seconds = time.perf_counter() - began
    print(f"100,000 ids committed to in {seconds:.2f} s")
    assert root == "d567f4a35f81182a6e514fe69a048044c07237c1388e9018936e1556a67b7ad7"
    assert seconds < 10
