"""Another embedder: every vector anew, the same ids, all or nothing; whoever has the memory open is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag import Bag, facts, opened

from durable.crash.state import differences, dump
from memsift import Budget, FifoPolicy, MemoryStore
from memsift.errors import (
    BudgetExceeded,
    CorruptStore,
    DimensionMismatch,
    EmbedderFailed,
    EmbedderMismatch,
    InvalidValue,
)
from memsift.index.hnsw import build, search

KEPT = [
    "ids", "created_tick", "accessed_tick", "created_at", "accessed_at", "access_count", "use_count",
    "cost", "importance", "pinned", "metadata", "tick", "next_id", "counts", "budget", "audit", "texts",
    "archived at", "archived metadata", "archived use_count",
]  # fmt: skip


def lived(folder: Path, **options: Any) -> Any:
    """A memory with a past: searches, uses, a pin, an archive, ghosts, a recorded log."""
    memory = opened(folder, clock=lambda: 7.0, policy=FifoPolicy(), **options)
    memory.store.record()
    memory.remember_many(facts(12), metadata=[{"n": i} for i in range(12)])
    for i in range(4, 9):
        memory.feedback([memory.recall(facts(12)[i], 2)[0].id])
    memory.pin(11)
    memory.compact(9)
    memory.recall(facts(12)[0], 2)
    memory.store.flush()
    return memory


@pytest.mark.parametrize("dim", [64, 256, 300])
@pytest.mark.parametrize("vectors", ["float32", "tiered"])
def test_everything_stays_but_the_vectors(tmp_path: Path, dim: int, vectors: str) -> None:
    told: list[tuple[int, int]] = []
    other = Bag(dim, f"new@1/{dim}")
    with lived(tmp_path, vectors=vectors) as memory:
        before = dump(memory.store)
        memory.reembed(other, progress=lambda *done: told.append(done))
        after = dump(memory.store)
        assert set(differences(before, after)).isdisjoint(KEPT)
        assert told == [(12, 12)]
        assert other.asked == [12]
        assert (memory.embedder, memory.store.embedder, memory.store.dim) == (
            other,
            f"new@1/{dim}",
            dim,
        )
        for found in memory.store.get(range(12), include_archived=True):
            wanted = other.embed(facts(found.id + 1)[-1:])[0]
            assert found.vector == pytest.approx(wanted / np.linalg.norm(wanted), abs=1e-6)
        grown = (memory.store.view().nbytes - 4 * dim).tolist()
        assert memory.store.verify().ok
        assert memory.store.stats().regret.watched == 0
        assert len(memory.store.view().context) == 0
        assert [one.id for one in memory.recall(facts(12)[7], 1)] == [7]
        assert memory.recall(facts(12)[0], 1, include_archived=True)[0].archived
        assert not memory.remember(facts(12)[7]).added
        memory.restore(0)
        memory.store.flush()
        kept = dump(memory.store)
    with opened(tmp_path, embedder=other, clock=lambda: 7.0) as memory:
        assert differences(kept, dump(memory.store)) == []
        assert memory.store.verify().ok
    with pytest.raises(EmbedderMismatch):
        opened(tmp_path)
    assert (
        len(set(grown)) == 2
    )  # the same beside the vectors: a window's row, and metadata of one or two digits


def test_a_log_that_was_recorded_begins_anew(tmp_path: Path) -> None:
    with lived(tmp_path) as memory:
        assert memory.store.access_log().dim == 256
        memory.reembed(Bag(32))
        memory.recall("fact3", 1)
        assert memory.store.access_log().dim == 32
        memory.store.record(None)
        memory.reembed(Bag(16))
        assert memory.store.access_log().dim == 16


def test_the_threshold_is_the_new_embedders(tmp_path: Path) -> None:
    other = Bag(64)
    other.near_duplicate = 0.5
    with opened(tmp_path) as memory, opened(tmp_path, namespace="mine", near_duplicate=0.7) as mine:
        for one in (memory, mine):
            one.remember("x")
            one.reembed(other)
        assert (memory.near_duplicate, mine.near_duplicate) == (0.5, 0.7)


def test_an_empty_memory(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.reembed(Bag(8))
        assert memory.remember("word").id == 0
        assert memory.store.verify().ok


# ---- who has it open as well ---------------------------------------------------------------------


@pytest.mark.parametrize("dim", [64, 256])
def test_others_are_told(tmp_path: Path, dim: int) -> None:
    with lived(tmp_path) as memory:
        agent = opened(tmp_path)
        agent.recall("fact5 said5")  # a touch of it waits
        store = MemoryStore.open(tmp_path / "agent.memsift")
        memory.reembed(Bag(dim, "new"))
        for _ in range(2):
            for call in (
                lambda: agent.remember("something new"),
                lambda: agent.recall("fact1"),
                lambda: agent.get(1),
                lambda: agent.stats(),
                lambda: agent.compact(2),
                lambda: store.add(np.ones(256)),
                lambda: store.search(np.ones(256)),
                lambda: store.view(),
            ):
                with pytest.raises(EmbedderMismatch, match=r"'new'.*open it again"):
                    call()
        agent.close()
        store.close()
        assert memory.store.verify().ok
        with opened(tmp_path, embedder=Bag(dim, "new")) as again:
            assert again.remember("something new").added


def test_what_others_add_meanwhile_is_embedded_too(tmp_path: Path) -> None:
    with opened(tmp_path) as memory, opened(tmp_path) as other:
        memory.remember_many(facts(3))

        class Late(Bag):
            def embed(self, texts: Any) -> Any:
                if not self.asked:
                    other.remember_many(facts(5))
                    other.forget(0)
                return super().embed(texts)

        late = Late(32)
        memory.reembed(late)
        assert late.asked == [3, 2]
        assert memory.store.ids().tolist() == [1, 2, 3, 4]
        assert memory.recall(facts(5)[4], 1)[0].id == 4
        assert memory.store.verify().ok


def test_a_text_that_was_embedded_before_is_not_mixed_in(tmp_path: Path) -> None:
    """Another thread embeds with the old one while all vectors become others of the same length."""
    with opened(tmp_path) as memory:
        memory.remember_many(facts(3))

        class Interrupted(Bag):
            def embed(self, texts: Any) -> Any:
                memory.embedder = old
                memory.reembed(Bag(256, "new"))
                return super().embed(texts)

        old = memory.embedder
        for call in (lambda: memory.remember("in between"), lambda: memory.recall("in between")):
            memory.reembed(old)
            memory.embedder = Interrupted()
            with pytest.raises(EmbedderMismatch, match="call again"):
                call()
        assert len(memory) == 3


# ---- all or nothing ------------------------------------------------------------------------------


class Breaking(Bag):
    def embed(self, texts: Any) -> Any:
        return np.full((len(texts), self.dim), np.nan) if len(texts) else super().embed(texts)


def unchanged(memory: Any, call: Any, *errors: type[Exception], match: str) -> None:
    before = dump(memory.store)
    with pytest.raises(errors, match=match):
        call()
    assert differences(before, dump(memory.store)) == []
    assert memory.embedder.fingerprint == memory.store.embedder == "bag@1/256"
    assert memory.recall(facts(8)[7], 1, touch=False)[0].id == 7
    assert memory.store.verify().ok


def test_entries_without_text_are_named(tmp_path: Path) -> None:
    with lived(tmp_path) as memory:
        memory.store.add_many(np.eye(256)[:2])
        other = Bag(32)
        words = r"^reembed needs the text of every entry; 2 of 14 have none, among them 12, 13: delete them, or"
        unchanged(memory, lambda: memory.reembed(other), InvalidValue, match=words)
        assert other.asked == []
        memory.forget(12)
        memory.store.texts.put(13, ["given afterwards"])
        memory.reembed(other)
        assert memory.recall("given afterwards", 1)[0].id == 13
    with opened(tmp_path, namespace="bare", payloads=False) as bare:
        bare.remember_many(facts(2))
        with pytest.raises(InvalidValue, match="2 of 2 have none"):
            bare.reembed(other)


def test_a_failure_changes_nothing(tmp_path: Path) -> None:
    with lived(tmp_path) as memory:
        unchanged(memory, lambda: memory.reembed(Breaking(32)), EmbedderFailed, match="NaN|finite")
        few = np.ones((3, 32), np.float32)
        again = lambda: memory.store.reembed(lambda texts: few, 32, "x")  # noqa: E731
        unchanged(memory, again, InvalidValue, match=r"one per text \(12\); got 3")


def test_pinned_entries_must_fit_with_longer_vectors(tmp_path: Path) -> None:
    with opened(tmp_path, budget=Budget(bytes=40_000), policy=FifoPolicy()) as memory:
        memory.remember_many(facts(12))
        memory.pin(range(12))
        unchanged(memory, lambda: memory.reembed(Bag(4096)), BudgetExceeded, match="pinned entries")
        memory.unpin(range(2, 12))
        memory.reembed(Bag(2048))
        assert memory.store.budget.fits(memory.store.stats().size)
        assert 2 <= len(memory) < 6
        assert memory.store.verify().ok


def test_a_damaged_text_stops_it(tmp_path: Path) -> None:
    with lived(tmp_path) as memory:
        memory.store._db.execute("UPDATE payload SET text = 'other' WHERE key & 0xff = 3")
        with pytest.raises(CorruptStore):
            memory.reembed(Bag(32))
        assert memory.store.embedder == "bag@1/256"


def test_vectors_of_the_old_length_are_refused(tmp_path: Path) -> None:
    with lived(tmp_path) as memory:
        memory.reembed(Bag(32))
        with pytest.raises(DimensionMismatch):
            memory.store.search(np.ones(256))


@pytest.mark.parametrize("dim", [64, 256])
def test_a_graph_is_made_anew(tmp_path: Path, dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph beside the file knows the old vectors: nobody may be answered by it."""
    pytest.importorskip("usearch", reason="needs memsift[ann]")
    # A graph from a hundred entries on, for which the search need not be worth it, and saved at once.
    small = {"SMALLEST": 100, "LULL_SECONDS": 0.0, "SHARE": 0, "SCANNED_FLOATS": 0, "TAIL": 1}
    for name, value in small.items():
        monkeypatch.setattr(search, name, value)
    monkeypatch.setattr(build, "TAIL", 1)
    with opened(tmp_path, index="hnsw") as memory:
        memory.remember_many(facts(300))
        assert memory.store.wait_for_index()
    graph = tmp_path / "agent.memsift.default.hnsw"
    assert graph.exists()
    new = Bag(dim, "new")
    with opened(tmp_path) as memory:
        assert memory.recall(facts(300)[5], 1)[0].id == 5
        assert memory.store.wait_for_index()
        assert memory.store.stats().index.graph > 0
        memory.reembed(new)
        for i in (3, 77, 299):
            assert memory.recall(facts(300)[i], 1)[0].id == i
        assert memory.store.wait_for_index()
        assert memory.store.stats().index.graph > 0
        assert memory.store.stats(probe=True).index.recall > 0.9
        assert memory.store.verify().ok
    with opened(tmp_path, embedder=new) as memory:
        assert memory.recall(facts(300)[123], 1)[0].id == 123
