"""Damaged .rvf files: noticed, named, and never a crash or a large allocation.

`MEMSIFT_RVF_MUTANTS` sets how many mutants each round makes at random, beside the systematic ones.
"""

from __future__ import annotations

import os
import random
import struct
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rvf_hand import HEADER, Hand, difference, full, official, rehashed, segments, written

from memsift.errors import CorruptStore
from memsift.formats.rvf import RvfSnapshot, read_rvf

ROUND = int(os.environ.get("MEMSIFT_RVF_MUTANTS", "700"))
LENGTHS = (0, 1, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 64, 2**64 - 1)

Mutant = tuple[str, bytes]


class Reader:
    """Reads mutants; every one must give a sound snapshot or `CorruptStore`, within bounded memory."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "mutant.rvf"
        self.count = 0

    def __call__(self, name: str, data: bytes) -> RvfSnapshot | None:
        self.path.write_bytes(data)
        self.count += 1
        tracemalloc.reset_peak()
        start = tracemalloc.get_traced_memory()[0]
        got, fault = attempt(self.path)
        peak = tracemalloc.get_traced_memory()[1] - start
        assert peak <= 4 * len(data) + 16e6, f"{name}: {peak} bytes for a file of {len(data)}"
        if got is not None:
            sound(got, name)
        if fault is not None:
            assert fault.section, name
            assert fault.offset is not None, name
            assert 0 <= fault.offset <= len(data), name
        return got


def attempt(path: Path) -> tuple[RvfSnapshot | None, CorruptStore | None]:
    try:
        return read_rvf(path), None
    except CorruptStore as error:
        return None, error


def sound(got: RvfSnapshot, name: str) -> None:
    n = len(got.ids)
    assert np.unique(got.ids).size == n, name
    assert (got.ids >= 0).all(), name
    assert got.vectors.shape[0] == n, name
    assert np.isfinite(got.vectors).all(), name
    assert all(column.shape == (n,) for column in (got.columns or {}).values()), name
    assert got.metadata is None or len(got.metadata) == n, name


@pytest.fixture
def reader(tmp_path) -> Iterator[Reader]:
    tracemalloc.start()
    yield Reader(tmp_path)
    tracemalloc.stop()


def cuts(data: bytes) -> Iterator[Mutant]:
    edges = {at for at, _, _ in segments(data)} | {at + HEADER for at, _, _ in segments(data)}
    percents = {len(data) * percent // 100 for percent in range(101)}
    near = {edge + step for edge in edges for step in (-1, 0, 1)}
    for stop in sorted(s for s in near | percents if 0 <= s < len(data)):
        yield f"cut at {stop}", data[:stop]
        yield f"zeros from {stop}", data[:stop] + bytes(len(data) - stop)


def lengths(data: bytes) -> Iterator[Mutant]:
    """Every length and offset field with values that overflow or run past the end."""
    fields = [(at + 16, 8) for at, _, _ in segments(data)]
    for at, type_, _ in segments(data):
        body = at + HEADER
        if type_ == 1:
            fields += [(body, 2), (body + 2, 4)]
        elif type_ == 5:
            count = struct.unpack_from("<I", data, body + 14)[0]
            rows = [body + 22 + 25 * row for row in range(count)]
            fields += [(body + 4, 2), (body + 14, 4), (body + 22 + 25 * count, 4)]
            fields += [(row + 8, 8) for row in rows] + [(row + 16, 8) for row in rows]
        elif type_ == 0xF0:
            fields += [(body + 64, 4)]
        elif type_ == 0xF3:
            fields += [(body + 64, 4), (body + 68, 4)]
        if type_ >= 0xF0:
            fields += [(body + 16, 8)]
    for at, size in fields:
        for value in LENGTHS:
            new = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
            if new != data[at : at + size]:
                yield f"{value} at {at}", data[:at] + new + data[at + size :]


def flips(data: bytes, chance: random.Random, count: int) -> Iterator[Mutant]:
    for _ in range(count):
        fresh = bytearray(data)
        places = [chance.randrange(len(data)) for _ in range(chance.choice((1, 1, 1, 2, 8)))]
        for at in places:
            fresh[at] ^= 1 << chance.randrange(8)
        yield f"bits at {places}", bytes(fresh)


def splices(
    data: bytes, others: list[bytes], chance: random.Random, count: int
) -> Iterator[Mutant]:
    """Pieces left out, put in, moved, doubled, zeroed, or taken from another file."""
    for _ in range(count):
        start = chance.randrange(len(data))
        size = chance.choice((1, 4, 8, 25, 64, 73, 512, 4096))
        stop, at = min(len(data), start + size), chance.randrange(len(data))
        piece, other = data[start:stop], chance.choice(others)
        kind = chance.choice(("out", "in", "over", "twice", "zero", "other"))
        made = {
            "out": data[:start] + data[stop:],
            "in": data[:at] + chance.randbytes(size) + data[at:],
            "over": data[:at] + piece + data[at + len(piece) :],
            "twice": data[:stop] + data[start:],
            "zero": data[:start] + bytes(len(piece)) + data[stop:],
            "other": data[:start] + other[start:],
        }[kind]
        yield f"{kind} {start}:{stop} at {at}", made


def unchecked(data: bytes) -> set[int]:
    """Bytes of a sealed file that nothing depends on: the idle fields in the headers of seal and manifest."""
    idle = [(6, 16), (24, 33), (34, 40), (56, 64)]
    headers = [at for at, _, _ in segments(data)[-2:]]
    return {at + place for at in headers for start, stop in idle for place in range(start, stop)}


def test_a_sealed_file_hides_no_damage(reader, tmp_path):
    snapshot = full()
    data = written(tmp_path, snapshot)
    others = [written(tmp_path, full(seed=9)), written(tmp_path, full(n=5, dim=3))]
    chance = random.Random(1)
    mutants = [
        *cuts(data),
        *lengths(data),
        *flips(data, chance, ROUND),
        *splices(data, others, chance, ROUND),
    ]
    free = unchecked(data)
    for name, mutant in mutants:
        got = reader(name, mutant)
        if got is None or mutant in others:
            continue
        assert difference(got, snapshot) is None, name
        if len(mutant) == len(data):
            changed = {at for at in range(len(data)) if data[at] != mutant[at]}
            assert changed <= free, f"{name} was not noticed"
        else:
            # Bytes behind the seal's segment are padding; the manifest after them must be whole.
            assert mutant.startswith(data[: segments(data)[-2][0]]), f"{name} was not noticed"
    assert reader.count >= 2_000


def test_every_single_byte_of_a_sealed_file_counts(tmp_path):
    snapshot, path = full(n=3, dim=2), tmp_path / "mutant.rvf"
    data = written(tmp_path, snapshot)
    free = unchecked(data)
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        got, _ = attempt(path)
        assert (got is None) or (at in free and difference(got, snapshot) is None), at


def test_damage_under_right_checksums_is_no_crash_either(reader, tmp_path):
    data = written(tmp_path, full())
    chance = random.Random(2)
    bodies = [
        place for at, _, size in segments(data) for place in range(at + HEADER, at + HEADER + size)
    ]
    edges = segments(data)
    for name, mutant in lengths(data):
        if segments_or_none(mutant) == edges:
            reader(name, rehashed(mutant))
    read = 0
    for _ in range(ROUND):
        fresh = bytearray(data)
        for at in chance.sample(bodies, chance.choice((1, 1, 2, 5))):
            fresh[at] = chance.choice((0, 1, 0x22, 0x5B, 0x7B, 0x7F, 0xFF, chance.randrange(256)))
        read += reader("rehashed", rehashed(bytes(fresh))) is not None
    assert read > ROUND // 20, "the checksums are right, so some mutants must get past all checks"


def segments_or_none(data: bytes) -> list[tuple[int, int, int]]:
    try:
        return segments(data)
    except (struct.error, IndexError):
        return []


def test_official_files_damaged_give_some_state_of_theirs_or_an_error(reader, tmp_path):
    hand = official()
    data = hand.data
    states = [(), (1, 2, 3), (1, 2)]
    chance = random.Random(3)
    others = [written(tmp_path, full()), Hand(2).rows((9, (1.0, 1.0))).manifest().data]
    for name, mutant in (
        *cuts(data),
        *lengths(data),
        *flips(data, chance, ROUND // 2),
        *splices(data, others[:1], chance, ROUND // 2),
    ):
        got = reader(name, mutant)
        if got is not None and got.state is None:
            assert tuple(got.ids.tolist()) in states, name


def test_a_claim_of_very_many_rows_costs_nothing(reader):
    reader("manifest", Hand(65535).data)
    wide = Hand(65535).add(1, struct.pack("<HI", 65535, 2**32 - 1)).manifest()
    assert reader("rows", wide.data) is None
    many = Hand(1)
    for _ in range(300):
        many.add(1, struct.pack("<HI", 1, 0))
    assert reader("segments", many.manifest().data) is not None
    many.directory *= 1000
    assert reader("directory", many.manifest().data) is None
