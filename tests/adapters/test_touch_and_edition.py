"""What the store offers to whoever ranks its hits anew: accesses written later, editions, metadata by id."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsift import MemoryStore
from memsift.errors import UnknownEntry

EYE = np.eye(4, dtype=np.float32)


def figures(store: MemoryStore, id_: int) -> tuple[int, int]:
    entry = store.get([id_])[0]
    assert entry is not None
    return entry.access_count, entry.accessed_tick


@pytest.mark.parametrize("durable", [False, True])
def test_a_touch_with_a_query_is_a_search_that_found_just_that(
    tmp_path: Path, durable: bool
) -> None:
    def opened(name: str) -> MemoryStore:
        return MemoryStore.open(tmp_path / name, 4) if durable else MemoryStore(4)

    with opened("a") as one, opened("b") as other:
        for store in (one, other):
            store.add_many(EYE)
        one.search(EYE[1], 2)
        ids = [hit.id for hit in other.search(EYE[1], 2, touch=False)]
        other.touch(ids, EYE[1], k=2)
        a, b = one.view(), other.view()
        for name in ("access_count", "accessed_tick", "heat", "attention"):
            assert getattr(a, name).tolist() == getattr(b, name).tolist()
        assert one.stats().searches == other.stats().searches == 1
        assert a.context.tolist() == b.context.tolist()


def test_a_touch_for_later_is_no_search_and_is_written_by_the_next_change(tmp_path: Path) -> None:
    with (
        MemoryStore.open(tmp_path / "a", 4, touch_flush_seconds=1e6) as one,
        MemoryStore.open(tmp_path / "a", touch_flush_seconds=1e6) as other,
    ):
        one.add_many(EYE)
        one.touch([2], later=True)
        assert figures(one, 2) == (1, 5)
        assert figures(other, 2) == (0, 3)
        other.add(EYE[0])  # takes tick 5 first: the touch comes after it
        assert figures(one, 2) == (1, 6)
        one.add(EYE[1])
        assert figures(other, 2) == (1, 6)
        assert one.stats().searches == other.stats().searches == 0
        with pytest.raises(UnknownEntry):
            one.touch([99], later=True)
        with pytest.raises(UnknownEntry):
            one.touch([99], EYE[0])


def test_an_edition_changes_when_entries_come_or_leave_and_only_then(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path / "a", 4) as one, MemoryStore.open(tmp_path / "a") as other:
        seen = [one.edition]
        other.add_many(EYE, [{"n": 1}, None, {"n": {"deep": [3]}}, None])
        seen.append(one.edition)
        assert one.metadata([2, 1, 9, 0]) == [{"n": {"deep": [3]}}, {}, None, {"n": 1}]
        one.search(EYE[0], 2)
        other.update(0, metadata={"n": 2})
        assert one.metadata([0]) == [{"n": 2}]
        assert one.edition == seen[-1]
        other.delete([0])
        seen.append(one.edition)
        other.retire([1])
        seen.append(one.edition)
        other.restore([1])
        seen.append(one.edition)
        assert len(set(seen)) == len(seen)
        one.metadata([2])[0]["n"]["deep"].append(4)  # type: ignore[index]
        assert one.metadata([2]) == [{"n": {"deep": [3]}}]
