"""The suites can fail: each planted bug is caught by the power loss, by the I/O errors or by the model."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import fault_shim
import io_errors
import power
import pytest
from fault_plants import PLANTS

pytestmark = pytest.mark.skipif(bool(fault_shim.why_not()), reason=fault_shim.why_not() or "-")

SEED = 22
# A script that brings each bug to light, and the I/O errors that do; without any, the power loss must.
POWER = {
    "never_syncs": "adds one by one",
    "syncs_as_in_normal": "adds one by one",
    "commits_at_the_next_call": "pin, update, delete",
    "audits_afterwards": "compact",
    "writes_each_row_by_itself": "batches beyond the budget",
    "erases_without_a_mark": "erase",
    "keeps_a_rollback_journal_in_memory": "adds one by one",
}
MODEL = {
    "forgets_the_record": "compact",
    "forgets_the_mark_of_the_archive": "restore",
    "forgets_to_roll_back": "refusals",
    "forgets_what_changed": "two handles",
    "counts_ids_anew": "close and reopen",
}
ERRORS = {
    "forgets_to_read_again": ("compact", "fsync"),
    "swallows_a_failed_commit": ("adds one by one", "fsync"),
    "drops_touches_too_early": ("touches and flush", "fsync"),
    "passes_errors_on": ("adds one by one", "fsync"),
}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    place = power.fast_folder()
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def shim(folder: Path) -> Path:
    return fault_shim.build(folder)


def lived(shim: Path, folder: Path, plant: str, script: str) -> power.Recording:
    (recording,) = power.record(shim, folder, [{"script": script, "durability": "full"}], plant)
    return recording


def troubles(shim: Path, folder: Path, plant: str, script: str, fault: str) -> list[str]:
    child = io_errors.Child(shim, folder, plant)
    case = {"script": script, "durability": "full", "fault": fault, "forever": False}
    try:
        count = child.ask(case | {"n": 10**9})["count"]
        wrong = (child.ask(case | {"n": n})["wrong"] for n in range(1, count + 1))
        return next((found for found in wrong if found), [])
    finally:
        child.close()


def test_every_plant_is_tried() -> None:
    assert sorted([*POWER, *MODEL, *ERRORS, "none"]) == sorted(PLANTS)


@pytest.mark.parametrize("plant", POWER)
def test_the_power_loss_has_teeth(shim: Path, folder: Path, plant: str) -> None:
    recording = lived(shim, folder, plant, POWER[plant])
    recording.wrong = []  # what the model says at once does not count here
    assert power.campaign([recording], 60, SEED).failures


@pytest.mark.parametrize("plant", MODEL)
def test_the_model_has_teeth(shim: Path, folder: Path, plant: str) -> None:
    assert lived(shim, folder, plant, MODEL[plant]).wrong


@pytest.mark.parametrize("plant", ERRORS)
def test_the_errors_have_teeth(shim: Path, folder: Path, plant: str) -> None:
    assert troubles(shim, folder, plant, *ERRORS[plant]), plant


def test_they_bite_nothing_else(shim: Path, folder: Path) -> None:
    cases = [
        {"script": script, "durability": "full"}
        for script in sorted({*POWER.values(), *MODEL.values()})
    ]
    recordings = power.record(shim, folder, cases)
    assert power.campaign(recordings, 15 * len(cases), SEED).failures == []


def test_the_errors_bite_nothing_else(shim: Path, folder: Path) -> None:
    assert troubles(shim, folder, "none", "touches and flush", "fsync") == []
