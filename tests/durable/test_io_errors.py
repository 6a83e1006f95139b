"""The disk refuses: a typed error, nothing changed, reads go on, and writes again once it is sound."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fault_shim
import io_errors
import power
import pytest

pytestmark = pytest.mark.skipif(bool(fault_shim.why_not()), reason=fault_shim.why_not() or "-")

SEED = 21


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    place = power.fast_folder()
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def shim(folder: Path) -> Path:
    return fault_shim.build(folder)


@pytest.fixture(scope="module")
def child(shim: Path, folder: Path) -> Iterator[io_errors.Child]:
    made = io_errors.Child(shim, folder)
    yield made
    made.close()


def ask(child: io_errors.Child, script: str, fault: str, n: int, **options: Any) -> io_errors.Case:
    case = {"script": script, "durability": "full", "forever": False} | options
    return child.ask(case | {"fault": fault, "n": n})


def test_operations_by_lot(child: io_errors.Child) -> None:
    out = io_errors.Outcome()
    io_errors.sample(child, out, 180, SEED)
    assert out.wrong == [], f"seed {SEED}: {out}"
    assert out.hit > 160
    assert out.raised["DiskTrouble"] > 40


@pytest.mark.parametrize("fault", ["ENOSPC", "fsync"])
@pytest.mark.parametrize("forever", [False, True])
def test_every_operation_of_one_script(child: io_errors.Child, fault: str, forever: bool) -> None:
    case = {"script": "compact", "durability": "full", "fault": fault, "forever": forever}
    out = io_errors.Outcome()
    io_errors.every_operation(child, out, case, stride=4 if fault == "ENOSPC" else 1)
    assert out.wrong == [], f"{out}"
    assert out.hit > 10


def test_an_interrupted_call_and_a_short_write_are_gone_on_with(child: io_errors.Child) -> None:
    """SQLite asks again; only a sync that is interrupted is an error."""
    assert ask(child, "adds one by one", "short", 40)["raised"] == []
    assert ask(child, "adds one by one", "short", 1, forever=True)["raised"] == []


def test_a_failed_sync_fails_the_call_in_full(child: io_errors.Child) -> None:
    """Each acknowledged write had a sync that succeeded: every failed one shows, but those of tidying up."""
    count = ask(child, "adds one by one", "fsync", 10**9)["count"]
    raised = [ask(child, "adds one by one", "fsync", n)["raised"] for n in range(1, count + 1)]
    assert raised.count(["add: DiskTrouble"]) == 6
    assert raised.count([]) <= 2  # SQLite does not report a folder's sync that fails


# ---- what was found here, with the smallest input that showed it ----------------------------------


@pytest.mark.parametrize(
    ("script", "fault", "n", "forever"),
    [
        # `ROLLBACK` of a transaction that SQLite had ended by itself hid the disk's error behind a false CorruptStore.
        ("nothing but opening", "fsync", 5, False),
        ("nothing but opening", "ENOSPC", 24, True),
        # sqlite3.connect and os.open raised errors that are not ours.
        ("nothing but opening", "ENOSPC", 1, False),
        ("nothing but opening", "read", 1, True),
        ("nothing but opening", "EIO", 1, True),
    ],
)
def test_opening_on_a_bad_disk(
    child: io_errors.Child, script: str, fault: str, n: int, forever: bool
) -> None:
    answer = ask(child, script, fault, n, forever=forever)
    assert answer["fired"]
    assert answer["wrong"] == []


def test_a_file_that_could_be_opened_for_reading_only(child: io_errors.Child) -> None:
    """SQLite falls back to reading where opening for writing fails, and a store stayed so until it was closed."""
    case = {"script": "opened again and written to", "durability": "full", "forever": False}
    out = io_errors.Outcome()
    io_errors.every_operation(child, out, case | {"fault": "EIO"})
    assert out.wrong == []


def test_an_erasure_that_was_made_true_never_raises(child: io_errors.Child) -> None:
    """Cleaning the file may fail after the commit: the receipt says so, the next opening does it.

    "Nothing was changed" would be false.
    """
    count = ask(child, "erase", "ENOSPC", 10**9)["count"]
    for n in range(count // 2, count, 7):
        for forever in (False, True):
            answer = ask(child, "erase", "ENOSPC", n, forever=forever)
            assert answer["wrong"] == [], f"ENOSPC {n}"


def test_an_export_is_whole_or_not_there(shim: Path, folder: Path) -> None:
    """A log cut short was left behind, and the error was not ours."""
    child = fault_shim.child(shim, folder, ["exports", str(folder), "none"])
    out, err = child.communicate("", timeout=60)
    assert child.returncode == 0, err[-1500:]
    answers = [json.loads(line) for line in out.splitlines()]
    assert {(a["export"], a["fault"]) for a in answers} == {
        (export, fault) for export in ("audit", "rvf") for fault in fault_shim.FAULTS
    }
    assert [a for a in answers if a["wrong"]] == []
    raised = {(a["export"], a["fault"]): a["raised"] for a in answers}
    assert raised["audit", "ENOSPC"] >= 2  # making the file, writing it
    assert raised["rvf", "fsync"] >= 1
