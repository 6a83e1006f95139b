"""Commitments to evicted ids: a keyed Merkle root that hides them and can prove each of them.

A leaf is SHA-256(0x00, HMAC-SHA-256(store key, id as 8 little-endian bytes)), in ascending order of ids; a node is
SHA-256(0x01, left, right), split at the largest power of two below the number of leaves (RFC 6962). Without the key
an id cannot be guessed from the root; with the key anyone can make such a root, so it proves only inside a signed log.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, cast

from memsift import checks
from memsift.audit.fields import is_hash
from memsift.errors import InvalidType, InvalidValue, UnknownEntry

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

EMPTY = hashlib.sha256(b"").hexdigest()
"""The commitment to no ids at all."""

_BLOCK = 64  # bytes that SHA-256 takes at a time; HMAC pads its key to them


@dataclass(frozen=True)
class Proof:
    """That one of `size` leaves stands at `index`: the sibling at each level, leaf first, in hex."""

    index: int
    size: int
    path: tuple[str, ...]


def evicted_commitment(key: bytes, ids: Iterable[int]) -> str:
    """The Merkle root over `ids`, in hex, whatever their order.

    Parameters
    ----------
    key : bytes, 16 to 64
        The store's own secret.
    ids : iterable of int, each different, from 0 to 2**63 - 1
    """
    level = _leaves(key, _ascending(ids))
    if not level:
        return EMPTY
    while len(level) > 1:
        level = _above(level)
    return level[0].hex()


def proof(key: bytes, ids: Iterable[int], id_: int) -> Proof:
    """That `id_` is among `ids`, for a holder of the key who knows only the root.

    Raises
    ------
    UnknownEntry
        It is not among them.
    """
    ordered = _ascending(ids)
    if id_ not in ordered:
        raise UnknownEntry(f"id {id_} is not among the {len(ordered):,} ids of this commitment")
    place = at = ordered.index(id_)
    path = []
    level = _leaves(key, ordered)
    while len(level) > 1:
        if at ^ 1 < len(level):
            path.append(level[at ^ 1].hex())
        level, at = _above(level), at >> 1
    return Proof(place, len(ordered), tuple(path))


def check(root: str, count: int, key: bytes, id_: int, proof: Proof) -> bool:
    """Whether `proof` shows that `id_` is one of the `count` ids under `root` (RFC 9162, 2.1.3.2).

    `root` and `count` are the record's `evicted_commitment` and `evicted_count`.
    """
    right_form = is_hash(root) and all(is_hash(step) for step in proof.path)
    if not right_form or proof.size != count or not 0 <= proof.index < count:
        return False
    at, last = proof.index, count - 1
    node = _leaves(key, _ascending([id_]))[0]
    for step in map(bytes.fromhex, proof.path):
        if last == 0:
            return False
        if at & 1 or at == last:
            node = _node(step, node)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            node = _node(node, step)
        at, last = at >> 1, last >> 1
    return last == 0 and hmac.compare_digest(node.hex(), root)


def sealed(key: bytes, digest: str) -> str:
    """A digest of a memory's state as a record may show it.

    A bare hash of few columns or of one query's vector could be guessed and tried; under the key it cannot.
    """
    if not is_hash(digest):
        raise InvalidValue(
            f"digest must be 64 lowercase hex characters; got {checks.shown(digest)}"
        )
    return _mac(key, b"memsift state digest\x00" + bytes.fromhex(digest))


def context_digest(key: bytes, context: npt.NDArray[np.float32]) -> str | None:
    """The keyed digest of a context window, (w, dim) float32; None for an empty one."""
    rows = memoryview(cast(Any, context))
    shape = rows.shape or ()
    if rows.format != "f" or len(shape) != 2:
        raise InvalidType(f"context must be (w, dim) float32; got {rows.format} in {shape}")
    if not shape[0]:
        return None
    header = f"memsift context digest\x00{shape[0]}x{shape[1]}\x00".encode()
    return _mac(key, header + rows.tobytes())


def _mac(key: bytes, message: bytes) -> str:
    return hmac.digest(_checked(key), message, "sha256").hex()


def _checked(key: bytes) -> bytes:
    if not isinstance(key, bytes) or not 16 <= len(key) <= _BLOCK:
        size = f"{len(key)} bytes" if isinstance(key, bytes) else f"a {type(key).__name__}"
        raise InvalidValue(f"key must be 16 to {_BLOCK} bytes; got {size}")
    return key


def _ascending(ids: Iterable[int]) -> list[int]:
    many: Any = ids
    values = many.tolist() if hasattr(many, "tolist") else many
    try:
        ordered = sorted(map(index, values))
    except TypeError:
        raise InvalidType("ids must be integers; got something else among them") from None
    if ordered and not 0 <= ordered[0] <= ordered[-1] <= checks.LARGEST_INT:
        raise InvalidValue(
            f"ids must be from 0 to {checks.LARGEST_INT}; got {ordered[0]} to {ordered[-1]}"
        )
    if len(set(ordered)) < len(ordered):
        raise InvalidValue("ids must differ from each other; got one twice")
    return ordered


def _leaves(key: bytes, ordered: list[int]) -> list[bytes]:
    # HMAC written out, since copying its two prepared states takes half the time of `hmac.digest`.
    padded = _checked(key).ljust(_BLOCK, b"\x00")
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in padded))
    outer = hashlib.sha256(bytes(b ^ 0x5C for b in padded))
    sha256, leaves = hashlib.sha256, []
    for id_ in ordered:
        state, mac = inner.copy(), outer.copy()
        state.update(id_.to_bytes(8, "little"))
        mac.update(state.digest())
        leaves.append(sha256(b"\x00" + mac.digest()).digest())
    return leaves


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def _above(level: list[bytes]) -> list[bytes]:
    """The next level: pairs joined, an odd last one moved up. That is RFC 6962's split, from below."""
    sha256 = hashlib.sha256
    nodes = [
        sha256(b"\x01" + a + b).digest() for a, b in zip(level[::2], level[1::2], strict=False)
    ]
    if len(level) & 1:
        nodes.append(level[-1])
    return nodes
