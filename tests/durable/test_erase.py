"""Erased means erased: no byte of it in any file, also after a crash at any step, and none in the table's memory."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crash import kill as killing
from crash.points import POINTS, Kill, arm
from crash.scan import CANARY_DIM, canary, scan, secret, spellings

from memsift import FifoPolicy, MemoryStore
from memsift.durable import DurableStore

CANARIES = 6
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def opened(path: Path, **options: Any) -> DurableStore:
    options = {"policy": FifoPolicy(), "touch_flush_seconds": 1000.0} | options
    return MemoryStore.open(path, CANARY_DIM, budget=500, **options)


def planted(path: Path, rest: int = 0) -> tuple[DurableStore, list[int]]:
    """A store with canaries among others, the first `rest` of them archived; some asked for by their own vectors."""
    rng = np.random.default_rng(0)
    store = opened(path)
    ids = []
    for number in range(CANARIES):
        with store.transaction():
            ids.append(store.add(canary(number), {"text": secret(number)}))
            store.texts.put(ids[-1], [f"It says {secret(number)}, and more. " * 3])
        store.add_many(rng.normal(size=(20, CANARY_DIM)), [{"text": "x" * 50}] * 20)
    if rest:
        keep = [i for i in store.view().ids.tolist() if i not in ids[:rest]]
        store.pin(keep)
        store.compact(len(keep))
        store.unpin(keep)
        assert store.archived().tolist() == ids[:rest]
    for number in range(0, CANARIES, 2):
        store.search(canary(number), 3)
    return store, ids


def traces(folder: Path, numbers: Iterator[int] | range = range(CANARIES)) -> list[str]:
    return [hit for n in numbers for hit in scan(folder, spellings(canary(n), secret(n)))]


@pytest.mark.parametrize("rest", [0, 3, CANARIES], ids=["live", "some archived", "all archived"])
def test_nothing_is_left_in_any_file(tmp_path: Path, rest: int) -> None:
    store, ids = planted(tmp_path / "a.memsift", rest)
    store.flush()
    before = traces(tmp_path)
    for wanted in ("float32", "UTF-8"):  # the scanner can see
        assert len([hit for hit in before if hit.endswith(f": {wanted}")]) >= CANARIES
    receipt = store.erase(ids)
    assert receipt.complete, str(receipt)
    assert receipt.places["pages"] == receipt.places["log"] == "erased"
    assert traces(tmp_path) == []
    assert not any(i in store for i in ids)
    assert store.archived().size == 0
    store.add(np.ones(CANARY_DIM))
    assert traces(tmp_path) == []
    assert store.verify().ok
    store.close()
    assert traces(tmp_path) == []
    with opened(tmp_path / "a.memsift") as again:
        assert len(again) == CANARIES * 20 + 1
        assert again.audit.verify().status != "broken"


def test_each_of_many_erasures_leaves_nothing(tmp_path: Path) -> None:
    store, ids = planted(tmp_path / "a.memsift", 3)
    rng = np.random.default_rng(1)
    for number, id_ in enumerate(ids):
        store.add_many(rng.normal(size=(7, CANARY_DIM)))
        store.erase(id_)
        assert traces(tmp_path, range(number + 1)) == []
    store.close()


def test_without_a_vacuum_the_receipt_says_what_waits_and_the_next_opening_does_it(
    tmp_path: Path,
) -> None:
    """`vacuum=False` wrote the file anew all the same."""
    store, ids = planted(tmp_path / "a.memsift", 3)
    receipt = store.erase(ids, vacuum=False)
    assert not receipt.complete
    assert "pending: no vacuum was wanted" in receipt.places["pages"]
    assert receipt.places["log"] == "erased"
    left = traces(tmp_path)
    print("left without a vacuum:", left)
    assert all(hit.startswith("a.memsift:") for hit in left), "only gaps in pages may hold remnants"
    store.close()
    opened(tmp_path / "a.memsift").close()
    assert traces(tmp_path) == []


def test_queries_that_were_as_good_as_the_entry_go_with_it(tmp_path: Path) -> None:
    """The window of recent queries kept the erased vector, byte for byte."""
    with opened(tmp_path / "a.memsift") as store:
        id_ = store.add(canary(0))
        store.add(canary(1))
        store.search(canary(0))
        store.search(canary(1))
        assert len(store.view().context) == 2
        store.erase(id_)
        assert traces(tmp_path, range(1)) == []
        # Its place is taken by another query: the window stays as long as it was.
        assert [row.tolist() for row in store.view().context] == [canary(1).tolist()] * 2
        store.erase(store.view().ids)
        assert len(store.view().context) == 0
        store.search(canary(2))
        assert store.view().context.tolist() == [canary(2).tolist()]
        assert store.verify().ok
    with opened(tmp_path / "a.memsift") as store:
        assert store.view().context.tolist() == [canary(2).tolist()]


def test_an_erasure_is_pending_while_another_process_reads(tmp_path: Path) -> None:
    import sqlite3

    store, ids = planted(tmp_path / "a.memsift")
    store.close()
    store = opened(tmp_path / "a.memsift", busy_timeout=0.1)
    reader = sqlite3.connect(tmp_path / "a.memsift", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM entry").fetchone()
    receipt = store.erase(ids)
    assert not receipt.complete
    assert receipt.places["log"].startswith("pending")
    reader.execute("COMMIT")
    reader.close()
    store.close()
    opened(tmp_path / "a.memsift").close()
    assert traces(tmp_path) == []


def test_exports_are_named_as_out_of_reach(tmp_path: Path) -> None:
    store, ids = planted(tmp_path / "a.memsift")
    store.save_rvf(tmp_path / "copy.rvf")
    receipt = store.erase(ids)
    assert receipt.places["export copy.rvf"].startswith("unreachable")
    assert {hit.split(":")[0] for hit in traces(tmp_path)} == {"copy.rvf"}
    store.close()


def test_the_log_names_nobody(tmp_path: Path) -> None:
    """No vector, metadata, hash of a vector or guessable hash of an id."""
    import hashlib

    store, ids = planted(tmp_path / "a.memsift", 3)
    store.erase(ids)
    log = b"\n".join(store.audit.bodies())
    for number, id_ in enumerate(ids):
        assert not any(x in log for x in spellings(canary(number), secret(number)).values())
        for text in (str(id_).encode(), canary(number).tobytes(), id_.to_bytes(8, "little")):
            assert hashlib.sha256(text).hexdigest().encode() not in log
    store.close()


# ---- a crash at each step ------------------------------------------------------------------------

STEPS = [
    (point, when)
    for point in POINTS
    for when in ("before", "after")
    if point in ("vector delete", "entry delete", "note delete", "text delete", "audit insert")
    or point
    in (
        "pending flag",
        "state update",
        "change insert",
        "commit",
        "vacuum",
        "checkpoint",
        "pending done",
    )
]


@pytest.mark.parametrize(("point", "when"), STEPS)
@pytest.mark.parametrize("vacuum", [True, False])
def test_a_kill_at_any_step(tmp_path: Path, point: str, when: str, vacuum: bool) -> None:
    """Before the commit everything is there; after it, the next opening leaves no byte."""
    path = tmp_path / "a.memsift"
    store, ids = planted(path, 3)
    store.close()
    erased = [0, 3, 5]  # two live ones and an archived one

    def child(out: int) -> None:
        own = opened(path)
        # Armed once the store is open: the connection is of the killing kind from the start.
        os.write(out, b"e")
        own.erase([ids[i] for i in erased], vacuum=vacuum)
        os.write(out, b"a")
        own.close()

    def armed(out: int) -> None:
        arm(Kill(point, when, 1))
        child(out)

    status, said = killing._reap(*killing._forked(armed), None)
    assert b"!" not in said, said.decode()
    met = vacuum or point not in ("vacuum", "pending done")
    assert os.WIFSIGNALED(status) == met, "the step was not met"
    with opened(path) as again:
        gone = [ids[i] not in again and ids[i] not in again.archived() for i in erased]
        assert all(gone) or not any(gone), "a half-done erasure"
        assert again.verify().ok
        records = [b for b in again.audit.bodies() if b'"kind":"erase"' in b]
        assert len(records) == all(gone)
        assert all(gone) or b"a" not in said
    if all(gone):
        assert traces(tmp_path, iter(erased)) == []
    else:
        assert len({hit for hit in traces(tmp_path, iter(erased)) if "float32" in hit}) > 0


# ---- memory --------------------------------------------------------------------------------------


def test_no_row_beyond_the_last_one_still_holds_it(tmp_path: Path) -> None:
    store, ids = planted(tmp_path / "a.memsift")
    table = store._memory.table
    store.erase(ids[-2:])
    rows = store._memory.table.plane.rows
    for number in range(CANARIES - 2, CANARIES):
        assert not (np.abs(rows @ canary(number)) > 0.999).any()
        assert canary(number).tobytes() not in rows.tobytes()
    assert store._memory.table is table
    store.close()


def test_erasing_takes_no_longer_than_it_must(tmp_path: Path) -> None:
    store, ids = planted(tmp_path / "a.memsift")
    began = time.perf_counter()
    store.erase(ids)
    assert time.perf_counter() - began < 5
    store.close()
