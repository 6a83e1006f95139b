"""Files with wrong bytes: what is done to them, and what a child finds when it opens and uses them."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from crash.state import differences, dump

from memsift import MemoryStore
from memsift.errors import MemsiftError

PAGE = 16_384
DIM = 24
SECONDS = 2
ROOM = 1 << 30  # address space beyond what a child has already
BATCH = 25


def make(path: Path) -> None:
    """A closed store with everything in it: metadata, an archive, records, a second namespace, several pages.

    Byte for byte the same each time, so that a seed and a number name a mutant.
    """
    with (
        mock.patch("secrets.token_hex", lambda n: "5a" * n),
        mock.patch("secrets.token_bytes", lambda n: b"Z" * n),
    ):
        _fill(path)


def _fill(path: Path) -> None:
    rng = np.random.default_rng(1)
    with MemoryStore.open(path, DIM, budget=300, archive=150, clock=lambda: 1.7e9) as store:
        notes = [{"n": i, "text": "word " * (i % 40)} if i % 3 else None for i in range(400)]
        ids = store.add_many(
            rng.normal(size=(400, DIM)), notes, cost=rng.integers(0, 9, 400).tolist()
        )
        here = [i for i in ids.tolist() if i in store or i in store.archived()]
        store.texts.put(here, [f"entry {i} says {'thing ' * (i % 60)}" for i in here])
        for _ in range(25):
            store.search(rng.normal(size=DIM), 5)
        store.compact(0.9)
        store.restore(store.archived()[:20])
    with MemoryStore.open(path, 8, "other", budget=10, clock=lambda: 1.7e9) as store:
        store.add_many(rng.normal(size=(30, 8)), [{"mine": True}] * 30)


def edges(raw: bytes) -> list[int]:
    """Where pages begin, and the parts of each: header, cell pointers, first cell."""
    out = set(range(0, 100, 4))
    for page in range(0, len(raw), PAGE):
        base = page + (100 if page == 0 else 0)
        out |= {page, base, base + 1, base + 3, base + 5, base + 8, base + 12}
        cells = int.from_bytes(raw[base + 3 : base + 5], "big")
        for at in range(base + 8, min(base + 8 + 2 * cells, len(raw) - 2), 2):
            out.add(page + int.from_bytes(raw[at : at + 2], "big"))
    return sorted(at for at in out if at < len(raw))


def mutant(
    raw: bytes, rng: np.random.Generator, marks: list[int], number: int
) -> tuple[str, bytes]:
    """One file with wrong bytes, and in words what was done to it."""
    data = bytearray(raw)
    pages = len(raw) // PAGE
    kind = number % 9
    if kind == 0:
        steps = [len(raw) * i // 100 for i in range(100)]
        at = steps[number // 9 % 100] if number // 9 < 100 else int(rng.choice(marks))
        return f"truncate to {at}", raw[:at]
    if kind in (1, 2):
        # Half of the time where it hurts: headers, pointers, the first bytes of cells.
        at = int(rng.choice(marks) + rng.integers(4)) if kind == 1 else int(rng.integers(len(raw)))
        at = min(at, len(raw) - 1)
        bit = 1 << int(rng.integers(8))
        data[at] ^= bit
        return f"flip {bit:#x} at {at}", bytes(data)
    if kind == 3:
        spots = rng.integers(0, len(raw), int(rng.integers(2, 40)))
        for at in spots:
            data[at] ^= 1 << int(rng.integers(8))
        return f"flip bits at {spots.tolist()}", bytes(data)
    one, two = (int(x) for x in rng.integers(0, pages, 2))
    here, there = slice(one * PAGE, (one + 1) * PAGE), slice(two * PAGE, (two + 1) * PAGE)
    if kind == 4:
        data[there] = raw[here]
        return f"page {one} over page {two}", bytes(data)
    if kind == 5:
        data[here], data[there] = raw[there], raw[here]
        return f"pages {one} and {two} swapped", bytes(data)
    if kind == 6:
        start = int(rng.choice([0, 0, 100, rng.integers(PAGE)]))
        data[one * PAGE + start : (one + 1) * PAGE] = bytes(PAGE - start)
        return f"page {one} zero from {start}", bytes(data)
    if kind == 7:
        at = min(int(rng.choice(marks)), len(raw) - 8)
        value = int(rng.choice([0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF]))
        width = int(rng.choice([1, 2, 4]))
        data[at : at + width] = struct.pack(">I", value & (256**width - 1))[-width:]
        return f"{width} bytes at {at} become {value:#x}", bytes(data)
    at, size = int(rng.integers(len(raw))), int(rng.integers(1, 400))
    source = int(rng.integers(len(raw) - size))
    data[at : at + size] = raw[source : source + size]
    return f"{size} bytes of {source} over {at}", bytes(data[: len(raw)])


def exercise(path: Path) -> list[dict[str, Any]]:
    """Open both namespaces and use them; what they hold."""
    found = []
    for name, dim in (("default", DIM), ("other", 8)):
        store = MemoryStore.open(path, dim, name, clock=lambda: 1.7e9)
        try:
            found.append(dump(store) | {"verified": store.verify().ok})
            query = np.ones(dim)
            store.search(query, 3, touch=False)
            store.search(query, 3, include_archived=True, touch=False)
            store.plan(0.5)
            store.stats()
            store.texts.get(store.ids())
            store.texts.nbytes()
            store.audit.verify()
            store.add(query)
            store.compact(0.5)
        finally:
            store.close()
    return found


@dataclass
class Figures:
    mutants: int = 0
    same: int = 0
    refused: int = 0
    verified: int = 0
    empty: int = 0
    slowest: float = 0.0
    largest_rss: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        return {
            "mutants": self.mutants,
            "typed errors": self.refused,
            "same contents": self.same,
            "archive or log, found by verify": self.verified,
            "empty files, which are new stores": self.empty,
            "kinds of errors": dict(self.errors.most_common()),
            "slowest, seconds": round(self.slowest, 3),
            "largest RSS, MB": self.largest_rss >> 20,
            "failures": len(self.failures),
        }


def campaign(count: int, seed: int = 0, progress: Any = None, seconds: float = 1e9) -> Figures:
    figures = Figures()
    root = Path(tempfile.mkdtemp(prefix="memsift-bytes-"))
    until = time.monotonic() + seconds
    try:
        original = root / "original.memsift"
        make(original)
        raw = original.read_bytes()
        marks = edges(raw)
        wanted = exercise(shutil.copy(original, root / "exercised.memsift"))
        start = 0
        while start < count and time.monotonic() < until:
            numbers = range(start, min(count, start + BATCH))
            for line in _batch(root, raw, marks, wanted, seed, numbers):
                _record(figures, line)
            start = numbers.stop
            if progress and start % (40 * BATCH) == 0:
                progress(figures)
            if len(figures.failures) > 20:
                break
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return figures


def _record(figures: Figures, line: list[str]) -> None:
    outcome, words, took, rss = line[0], line[1], float(line[2]), int(line[3])
    figures.mutants += 1
    figures.slowest = max(figures.slowest, took)
    figures.largest_rss = max(figures.largest_rss, rss)
    if outcome == "same":
        figures.same += 1
    elif outcome == "an empty file is a new store":
        figures.empty += 1
    elif outcome == "verify finds it":
        figures.verified += 1
    elif outcome.startswith("typed "):
        figures.refused += 1
        figures.errors[outcome.removeprefix("typed ")] += 1
    else:
        figures.failures.append(f"{words}: {outcome}")


def _batch(
    root: Path, raw: bytes, marks: list[int], wanted: list[Any], seed: int, numbers: range
) -> Iterator[list[str]]:
    """Outcomes of mutants, tried in one child, which is replaced should it die."""
    while numbers:
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(ours)
            try:
                _child(root, raw, marks, wanted, seed, numbers, theirs)
            finally:
                os._exit(0)
        os.close(theirs)
        with os.fdopen(ours, encoding="utf-8") as stream:
            lines = [line.rstrip("\n").split("\t") for line in stream]
        _, status = os.waitpid(pid, 0)
        done = len(lines) // 2
        yield from (line for line in lines if len(line) == 4)
        numbers = numbers[done:]
        if numbers:  # the last line says what it was at when it died
            name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "exit"
            words = lines[-1][0] if lines else "?"
            yield [
                "hangs" if name in ("SIGALRM", "SIGPROF") else f"died of {name}",
                words,
                "0",
                "0",
            ]
            numbers = numbers[1:]


def _child(
    root: Path, raw: bytes, marks: list[int], wanted: list[Any], seed: int, numbers: range, out: int
) -> None:
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + ROOM, held + ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    path = root / "mutant.memsift"
    for number in numbers:
        for name in ("", "-wal", "-shm", "-journal"):
            Path(f"{path}{name}").unlink(missing_ok=True)
        words, data = mutant(raw, np.random.default_rng((seed, number)), marks, number)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
        path.write_bytes(data)
        os.write(out, f"{words}\n".encode())
        # Two seconds of work; a machine that is busy with something else is no hang, a wait that never ends is one.
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(10 * SECONDS)
        began = time.process_time()
        outcome = _outcome(path, wanted)
        took = time.process_time() - began
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        os.write(out, f"{outcome}\t{words}\t{took}\t{rss}\n".replace("\r", " ").encode())


def _outcome(path: Path, wanted: list[Any]) -> str:
    before = path.read_bytes()
    try:
        found = exercise(path)
    except MemsiftError as error:
        return f"typed {type(error).__name__}"
    except BaseException as error:
        return f"raised {type(error).__name__}: {error}".replace("\n", " ").replace("\t", " ")[:300]
    odd = [name for one, two in zip(found, wanted, strict=True) for name in differences(one, two)]
    if odd == [] and len(found) == len(wanted):
        return "same"
    seen_only_by_verify = {"verified", "audit", *(name for name in wanted[0] if "archived" in name)}
    if "verified" in odd and set(odd) <= seen_only_by_verify:
        return "verify finds it"
    if not before:
        return "an empty file is a new store"
    return f"holds other {', '.join(odd)}, and nobody noticed"
