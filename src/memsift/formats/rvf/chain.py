"""The audit as a chain that others can check: 73-byte witness entries over the records' bodies.

| at | size | field                                                           |
|----|------|-----------------------------------------------------------------|
| 0  | 32   | SHAKE-256 of the previous entry's 73 bytes; zeros in the first  |
| 32 | 32   | SHAKE-256 of the body                                           |
| 64 | 8    | time: the body's "time" if that is an integer (unix ns), else 0 |
| 72 | 1    | type: 2, a computation                                          |

`rvf_witness_verify` of the official WebAssembly tools takes these bytes as they are. Nothing in the chain protects
its last entry: `head` does, kept elsewhere.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from itertools import pairwise

from memsift.errors import CorruptStore
from memsift.formats.rvf import strict
from memsift.formats.rvf.files import Buffer
from memsift.formats.rvf.private import Part

SECTION, CHAIN_SECTION = "audit", "chain"
# A record names counts and commitments, not entries; this is far above any.
LARGEST_BODY = 1024 * 1024
_DEPTH = 32
CHUNK = 64 * 1024 * 1024
_ENTRY = struct.Struct("<32s32sQB")
_COMPUTATION = 2


def shake(data: Buffer) -> bytes:
    return hashlib.shake_256(data).digest(32)


def entries(actions: Iterable[tuple[bytes, int]]) -> bytes:
    """The chain over actions and their times in unix ns, 73 bytes each."""
    chain = bytearray()
    last = b""
    for action, ns in actions:
        last = _ENTRY.pack(shake(last) if last else bytes(32), shake(action), ns, _COMPUTATION)
        chain += last
    return bytes(chain)


def head(chain: bytes) -> bytes:
    """What the next entry would point to; zeros for an empty chain."""
    return shake(chain[-_ENTRY.size :]) if chain else bytes(32)


def verified(chain: bytes) -> bool:
    """Whether each entry points to the one before it, the first to nothing."""
    if len(chain) % _ENTRY.size:
        return False
    steps = [chain[at : at + _ENTRY.size] for at in range(0, len(chain), _ENTRY.size)]
    return all(entry[:32] == bytes(32) for entry in steps[:1]) and all(
        entry[:32] == shake(before) for before, entry in pairwise(steps)
    )


def of_bodies(bodies: list[bytes]) -> bytes:
    """The chain over audit bodies, which must be strict JSON objects on one line; else ValueError."""
    return entries((body, _time(body)) for body in bodies)


def encode(bodies: list[bytes]) -> Iterator[bytes]:
    """Bodies of audit segments; one at least."""
    part: list[bytes] = []
    size = 0
    for body in bodies:
        if part and size + len(body) >= CHUNK:
            yield b"".join(part)
            part, size = [], 0
        part += (body, b"\n")
        size += len(body) + 1
    yield b"".join(part)


def decode(audit: list[Part], chain: Part | None) -> list[bytes]:
    """The audit bodies; the chain, if it is there, must be theirs."""
    actions = []
    for body, offset in strict.lines(audit, SECTION, LARGEST_BODY):
        try:
            actions.append((body, _time(body)))
        except ValueError as error:
            raise CorruptStore(
                SECTION, f"a record was expected; {str(error)[:80]}", offset
            ) from None
    if chain is not None and chain.body != entries(actions):
        raise CorruptStore(
            CHAIN_SECTION,
            f"the chain over {len(actions)} records was expected, another came",
            chain.offset,
        )
    return [body for body, _ in actions]


def _time(body: bytes) -> int:
    if len(body) > LARGEST_BODY or b"\n" in body:
        raise ValueError(f"a record must be one line of at most {LARGEST_BODY} bytes")
    record = strict.loaded(body, _DEPTH)
    if not isinstance(record, dict):
        raise ValueError("a record must be an object")
    time = record.get("time")
    return time if type(time) is int and 0 <= time < 2**64 else 0
