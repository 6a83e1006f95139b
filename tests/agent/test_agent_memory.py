"""An agent's memory, told as a story: texts in, the right ones out, within the budget."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag import Bag, facts, opened

from memsift import Budget, FifoPolicy, LruPolicy, MemoryStore
from memsift.agent import AgentMemory, Recollection, Remembered
from memsift.errors import (
    BudgetExceeded,
    EmbedderFailed,
    EmbedderMismatch,
    InvalidType,
    InvalidValue,
    UnknownEntry,
)


def test_what_was_remembered_is_recalled_also_after_reopening(tmp_path: Path) -> None:
    with opened(tmp_path, clock=lambda: 50.0) as memory:
        first = memory.remember("The cat is called Miez", metadata={"kind": "pet"}, importance=0.5)
        memory.remember("The car is red and old")
        assert first == Remembered(0, True, None, ())
    with opened(tmp_path, clock=lambda: 60.0) as memory:
        found = memory.recall("what is the cat called", 1)
        assert found == [
            Recollection(
                id=0, score=pytest.approx(0.8), text="The cat is called Miez", metadata={"kind": "pet"},
                created_at=50.0, accessed_at=60.0, access_count=1, use_count=0, cost=5, pinned=False,
                archived=False,
            )
        ]  # fmt: skip
        assert memory.get([1, 7, 0])[0] is not None
        assert [one and one.text for one in memory.get([1, 7, 0])] == [
            "The car is red and old", None, "The cat is called Miez",
        ]  # fmt: skip
        assert memory.get(0)[0].score is None
        assert len(memory) == 2
        assert repr(memory) == "AgentMemory('default' in agent.memsift, bag@1/256)"


def test_a_recall_embeds_once_and_leaves_as_much_of_a_trace_as_was_asked(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.remember_many(facts(5))
        memory.embedder.asked.clear()
        memory.recall("fact1 said1", 3, touch=False)
        assert [one.access_count for one in memory.get(range(5))] == [0] * 5
        found = memory.recall("fact1 said1", 3, touch=1)
        assert [one.access_count for one in found] == [1, 0, 0]
        assert memory.embedder.asked == [1, 1]
        assert memory.store.stats().searches == 1


def test_where_and_the_archive(tmp_path: Path) -> None:
    with opened(tmp_path, policy=FifoPolicy()) as memory:
        memory.remember_many(facts(4), metadata=[{"odd": i % 2} for i in range(4)])
        assert {one.id for one in memory.recall("fact", 9, where={"odd": 1})} == {1, 3}
        done = memory.compact(2)
        assert done.dropped.tolist() == [0, 1]
        assert [one.id for one in memory.recall("fact0 said0", 1)] != [0]
        found = memory.recall("fact0 said0", 1, include_archived=True)[0]
        assert (found.id, found.archived, found.text) == (0, True, facts(4)[0])
        assert memory.get(0)[0] == dataclasses.replace(found, score=None)
        memory.restore(0)
        assert memory.recall("fact0 said0", 1)[0].text == facts(4)[0]
        memory.forget([0, 3])
        assert memory.get([0, 3]) == [None, None]
        assert memory.store.texts.get([0, 3]) == [None, None]
        with pytest.raises(UnknownEntry):
            memory.forget([2, 3])
        assert memory.get(2)[0] is not None


# ---- what is known already -----------------------------------------------------------------------


def test_the_same_text_again_refreshes_the_old_entry(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.remember("the sky is blue", metadata={"from": "a"})
        again = memory.remember("the sky is blue", metadata={"from": "b"}, importance=1.0)
        assert again == Remembered(0, False, pytest.approx(1.0), ())
        assert len(memory) == 1
        entry = memory.store.get(0)[0]
        assert (entry.metadata, entry.importance, entry.pinned) == ({"from": "b"}, 1.0, False)
        assert (entry.access_count, entry.accessed_tick) == (1, memory.store.stats().tick)
        memory.remember("the sky is blue", pinned=True)
        entry = memory.store.get(0)[0]
        assert (entry.metadata, entry.importance, entry.pinned) == ({"from": "b"}, 1.0, True)
        memory.remember("the sky is blue")
        assert memory.store.get(0)[0].pinned


def test_near_duplicates_by_the_threshold(tmp_path: Path) -> None:
    said = "one two three four five six seven eight nine ten"
    near = said.replace("ten", "eleven")
    one, other = Bag().embed([said, near])
    alike = one @ other / np.sqrt((one @ one) * (other @ other))
    assert 0.85 < alike < 0.95
    with opened(tmp_path, near_duplicate=0.85) as memory:
        memory.remember(said)
        again = memory.remember(near)
        assert (again.id, again.added, again.similarity) == (0, False, pytest.approx(alike))
        assert memory.get(0)[0].text == said
    for number, least in enumerate([0.95, 1.0, 7.0]):
        with opened(tmp_path, namespace=f"n{number}", near_duplicate=least) as memory:
            memory.remember(said)
            assert memory.remember(near).added
            # The same words in another order have the same vector, and are another text.
            assert memory.remember(" ".join(reversed(said.split()))).added == (least >= 1.0)
            assert not memory.remember(near).added
            assert not memory.remember(said).added


def test_other_digits_are_another_fact(tmp_path: Path) -> None:
    """A cosine hardly sees the one word that matters."""
    with opened(tmp_path, near_duplicate=0.5) as memory:
        memory.remember("the meeting is on the 4th of May at noon")
        assert memory.remember("the meeting is on the 5th of May at noon").added
        assert not memory.remember("the meeting is on the 5th of May at night").added


def test_an_exact_repeat_is_found_among_texts_of_the_same_vector(tmp_path: Path) -> None:
    words = ["a b c d", "b a c d", "c a b d", "d a b c"]
    with opened(tmp_path, near_duplicate=1.0) as memory:
        assert all(one.added for one in memory.remember_many(words))
        assert [one.id for one in memory.remember_many(words[::-1])] == [3, 2, 1, 0]


def test_a_batch_is_as_one_by_one(tmp_path: Path) -> None:
    texts = [*facts(6), *facts(3), "fresh words here", *facts(2, 5), "fresh words here"]
    notes = [{"n": i} for i in range(len(texts))]
    with opened(tmp_path, namespace="many") as many, opened(tmp_path, namespace="single") as single:
        at_once = many.remember_many(
            texts, metadata=notes, importance=[i / 20 for i in range(len(texts))]
        )
        singly = [
            single.remember(text, metadata=note, importance=i / 20)
            for i, (text, note) in enumerate(zip(texts, notes, strict=True))
        ]
        assert [(one.id, one.added) for one in at_once] == [(one.id, one.added) for one in singly]
        assert many.embedder.asked == [len(texts)]
        for one, other in zip(many.get(range(8)), single.get(range(8)), strict=True):
            assert one == (
                other
                and dataclasses.replace(
                    other, created_at=one.created_at, accessed_at=one.accessed_at
                )
            )
        assert many.remember_many([]) == []


def test_a_thousand_of_the_same(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        found = memory.remember_many(["again and again"] * 3000)
        assert [one.added for one in found] == [True] + [False] * 2999
        assert memory.get(0)[0].access_count == 2999


def test_progress_is_told_and_may_say_no(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with opened(tmp_path) as memory:
        memory.remember_many(facts(2500), progress=lambda done, total: told.append((done, total)))
        assert told == [(1024, 2500), (2048, 2500), (2500, 2500)]

        def enough(done: int, total: int) -> None:
            raise KeyError("enough")

        with pytest.raises(KeyError):
            memory.remember_many(facts(10, 5000), progress=enough)
        assert len(memory) == 2500


def test_what_supersedes_another_takes_its_place(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.remember_many([*facts(3), "she lives in Paris near the river now"])
        # Nearly the same words, but the entry that they replace is no duplicate of them.
        new = memory.remember("she lives in Rome near the river now", supersedes=3)
        assert new == Remembered(4, True, None, ())
        assert memory.get(3)[0].archived
        assert memory.get(3)[0].text.endswith("Paris near the river now")
        with pytest.raises(UnknownEntry):
            memory.remember("nothing of this", supersedes=[0, 99])
        assert [one.archived for one in memory.get([0, 1, 2])] == [False] * 3
        assert memory.recall("nothing of this", 1)[0].score < 0.5
        memory.pin(0)
        assert memory.remember("all is one", supersedes=[0, 1, 1]).added
        assert memory.store.archived().tolist() == [0, 1, 3]
        memory.restore(3)
        assert not memory.get(3)[0].archived


def test_superseding_by_what_is_known(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.remember_many(facts(2))
        assert memory.remember(facts(2)[1], supersedes=0) == Remembered(
            1, False, pytest.approx(1.0)
        )
        assert memory.store.ids().tolist() == [1]
        # Its own successor: the old entry leaves all the same.
        assert memory.remember(facts(2)[1], supersedes=1).id == 2


# ---- the budget ----------------------------------------------------------------------------------


def test_what_left_to_make_room_is_told(tmp_path: Path) -> None:
    options: dict[str, Any] = {"policy": FifoPolicy(), "low_watermark": 1.0}
    with opened(tmp_path, budget=3, **options) as memory:
        memory.remember_many(facts(3))
        assert memory.remember(facts(4)[3]).evicted == (0,)
        told = [one.evicted for one in memory.remember_many(facts(5, 4))]
        assert told == [()] * 4 + [(1, 2, 3, 4, 5)]
        assert memory.store.ids().tolist() == [6, 7, 8]
        assert memory.get(4)[0].text == facts(1, 4)[0]  # archived at once, with its text
        assert memory.store.verify().ok
    with opened(tmp_path, namespace="bare", budget=3, archive=0, **options) as memory:
        memory.remember_many(facts(9))
        assert [text is None for text in memory.store.texts.get(range(9))] == [True] * 6 + [
            False
        ] * 3
        assert memory.store.verify().ok


def test_a_budget_of_tokens(tmp_path: Path) -> None:
    with opened(tmp_path, budget=Budget(cost=20), policy=FifoPolicy(), low_watermark=1.0) as memory:
        memory.remember_many(facts(12))  # five words each
        assert memory.store.stats().size.cost <= 20
        with pytest.raises(BudgetExceeded):
            memory.remember(" ".join(f"w{i}" for i in range(21)))
        assert memory.store.verify().ok


# ---- without texts -------------------------------------------------------------------------------


def test_without_payloads_there_are_ids_only(tmp_path: Path) -> None:
    with opened(tmp_path, payloads=False) as memory:
        memory.remember_many(facts(3), metadata=[{"n": i} for i in range(3)])
        assert not memory.remember(facts(3)[1]).added
        found = memory.recall(facts(3)[2], 1)[0]
        assert (found.id, found.text, found.metadata) == (2, None, {"n": 2})
        assert memory.stats().text_bytes == 0
        assert memory.stats().payloads is False
    assert facts(3)[0].encode() not in (tmp_path / "agent.memsift").read_bytes()


# ---- plans, reasons, figures ---------------------------------------------------------------------


def test_plans_and_reasons(tmp_path: Path) -> None:
    with opened(tmp_path, budget=10, policy=LruPolicy()) as memory:
        memory.remember_many(facts(8))
        memory.recall(facts(8)[0], 1)
        plan = memory.plan(4, context=["fact3 said3", "fact4"])
        assert plan.view.context.shape == (2, 256)
        assert plan.victims.tolist() == [1, 2, 3, 4]
        memory.feedback([1])
        done = memory.apply(plan)
        assert (done.dropped.tolist(), done.spared.tolist()) == ([2, 3, 4], [1])
        why = memory.explain(0)
        assert (why["verdict"], why["entry"]["text"]) == ("keep", facts(1)[0])
        assert memory.explain(2)["verdict"] == "archived"
        with pytest.raises(UnknownEntry):
            memory.explain(99)
        assert memory.compact(1, context="fact7").after.entries == 1
    with opened(tmp_path, namespace="endless") as memory:
        memory.remember("no budget at all")
        assert memory.explain(0)["id"] == 0


def test_figures(tmp_path: Path) -> None:
    with opened(tmp_path, budget=5) as memory:
        memory.remember_many(["größe", "ab"])
        found = memory.stats()
        assert (found.namespace, found.embedder, found.payloads) == ("default", "bag@1/256", True)
        assert (found.text_bytes, found.store.entries, found.compactor) == (9, 2, None)
        assert json.loads(json.dumps(found.to_dict()))["store"]["budget"] == {"entries": 5}


def test_erasing_takes_the_text(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.remember("the password is xyzzy-plugh")
        assert memory.erase(0).complete
        assert memory.get(0) == [None]
        for file in tmp_path.iterdir():
            assert b"xyzzy" not in file.read_bytes()


def test_a_compactor_in_the_background(tmp_path: Path) -> None:
    with opened(tmp_path, budget=20, background=True, low_watermark=0.5) as memory:
        memory.remember_many(facts(19))
        assert memory.store._compactor is not None
        assert memory.store._compactor.settle(60.0)
        found = memory.stats()
        assert found.compactor is not None
        assert (found.compactor.applied, found.store.entries) == (1, 10)
        assert found.to_dict()["compactor"]["applied"] == 1
        assert memory.get(memory.store.archived()[0])[0].text in facts(19)
    with opened(tmp_path) as memory:
        assert memory.stats().compactor is None
        with pytest.raises(TypeError):
            opened(tmp_path, dim=3)


# ---- who may open it -----------------------------------------------------------------------------


def test_another_embedder_is_refused_with_both_named(tmp_path: Path) -> None:
    opened(tmp_path).close()
    for other in (Bag(fingerprint="other@2/256"), Bag(32)):
        with pytest.raises(EmbedderMismatch) as caught:
            opened(tmp_path, embedder=other)
        assert "'bag@1/256'" in str(caught.value)
        assert repr(other.fingerprint) in str(caught.value)
    with MemoryStore.open(tmp_path / "agent.memsift") as store:  # who knows no embedder may look
        assert (store.embedder, store.dim) == ("bag@1/256", 256)
    assert issubclass(EmbedderMismatch, ValueError)


def test_a_namespace_that_names_no_embedder_takes_the_first_name(tmp_path: Path) -> None:
    path = tmp_path / "agent.memsift"
    with MemoryStore.open(path, 256) as store:
        assert store.embedder is None
        store.add(Bag().embed(["an old word"])[0])
    with opened(tmp_path) as memory, MemoryStore.open(path, 256) as other:
        assert other.embedder == memory.store.embedder == "bag@1/256"
        found = memory.recall("an old word", 1)[0]
        assert (found.id, found.text, found.score) == (0, None, pytest.approx(1.0))
        # What came without text is compared by its vector alone.
        assert not memory.remember("an old word").added
    with pytest.raises(EmbedderMismatch):
        MemoryStore.open(path, 256, embedder="another")
    for wrong in (7, "", "x" * 201, "a\nb", "ü"):
        with pytest.raises((InvalidType, InvalidValue), match=r"^embedder must be"):
            MemoryStore.open(path, 256, embedder=wrong)


class Broken(Bag):
    """An embedder that does what it must not, once it is told to."""

    def __init__(self, deed: Any) -> None:
        super().__init__(8, "bag@1/8")
        self.deed = deed

    def embed(self, texts: Any) -> Any:
        return self.deed(texts)


BROKEN: dict[str, Any] = {
    "raises": lambda texts: 1 / 0,
    "quotes": lambda texts: [][len(texts)] if texts else None,
    "too few": lambda texts: np.ones((len(texts) - 1, 8)),
    "too long": lambda texts: np.ones((len(texts), 9)),
    "one flat": lambda texts: np.ones(8 * len(texts)),
    "NaN": lambda texts: np.full((len(texts), 8), np.nan),
    "text": lambda texts: [["x"] * 8] * len(texts),
    "ragged": lambda texts: [[1.0]] + [[1.0, 2.0]] * len(texts),
    "nothing": lambda texts: None,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_embedder_is_named_and_nothing_is_stored(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, embedder=Broken(BROKEN[name])) as memory:
        for call in (
            lambda: memory.remember("my secret"),
            lambda: memory.remember_many(["my secret", "other"]),
            lambda: memory.recall("my secret"),
            lambda: memory.plan(0.5, context=["my secret"]),
        ):
            with pytest.raises(EmbedderFailed, match=r"^embedder 'bag@1/8' ") as caught:
                call()
            assert "secret" not in str(caught.value)
        assert len(memory) == 0


def test_what_means_nothing_to_the_embedder_is_named(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        with pytest.raises(EmbedderFailed, match=r"rows\[1\] must have a direction"):
            memory.remember_many(["a word", "?!"])
        assert len(memory) == 0


# ---- what is refused -----------------------------------------------------------------------------

TEXTS = {
    "none": (None, InvalidType),
    "bytes": (b"text", InvalidType),
    "number": (7, InvalidType),
    "empty": ("", InvalidValue),
    "NUL": ("a\0b", InvalidValue),
    "lone surrogate": ("a\ud800b", InvalidValue),
    "too long": ("é" * 32_769, InvalidValue),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_that_are_refused(tmp_path: Path, name: str) -> None:
    text, error = TEXTS[name]
    with opened(tmp_path) as memory:
        for call, parameter in (
            (lambda: memory.remember(text), "text"),
            (lambda: memory.remember_many(["fine", text]), r"texts\[1\]"),
            (lambda: memory.recall(text), "query"),
            (lambda: memory.store.texts.put([], [text]), r"texts\[0\]"),
        ):
            with pytest.raises(error, match=f"^{parameter} must "):
                call()
        assert len(memory) == 0
        assert memory.embedder.asked == []


def test_the_longest_text_is_kept(tmp_path: Path) -> None:
    text = "é" * 32_768
    with opened(tmp_path) as memory:
        memory.remember(text)
        assert memory.get(0)[0].text == text


CALLS: dict[str, Any] = {
    "metadata": lambda m: m.remember("x", metadata=[1]),
    "metadata, NaN": lambda m: m.remember("x", metadata={"a": float("nan")}),
    "importance": lambda m: m.remember("x", importance=2.0),
    "importance, text": lambda m: m.remember("x", importance="high"),
    "pinned": lambda m: m.remember("x", pinned=1),
    "created_at": lambda m: m.remember("x", created_at="now"),
    "supersedes": lambda m: m.remember("x", supersedes="0"),
    "supersedes, negative": lambda m: m.remember("x", supersedes=-1),
    "texts": lambda m: m.remember_many("x"),
    "texts, none": lambda m: m.remember_many(None),
    "metadata, one for all": lambda m: m.remember_many(["x"], metadata={"a": 1}),
    "metadata, too few": lambda m: m.remember_many(["x", "y"], metadata=[None]),
    "importance[1]": lambda m: m.remember_many(["x", "y"], importance=[0.1, 9]),
    "pinned, too many": lambda m: m.remember_many(["x"], pinned=[True, False]),
    "created_at, many": lambda m: m.remember_many(["x", "y"], created_at=[1.0, None]),
    "k": lambda m: m.recall("x", 0),
    "k, real": lambda m: m.recall("x", 1.5),
    "where": lambda m: m.recall("x", where={"$bad": 1}),
    "touch": lambda m: m.recall("x", touch=-1),
    "include_archived": lambda m: m.recall("x", include_archived=1),
    "ids": lambda m: m.get("0"),
    "ids, feedback": lambda m: m.feedback(0.5),
    "used": lambda m: m.feedback([], used="yes"),
    "ids, pin": lambda m: m.pin([None]),
    "ids, forget": lambda m: m.forget(-1),
    "ids, erase": lambda m: m.erase("all"),
    "ids, restore": lambda m: m.restore(True),
    "id_": lambda m: m.explain("0"),
    "target": lambda m: m.plan("all"),
    "policy": lambda m: m.plan(0.5, policy="lru"),
    "context": lambda m: m.plan(0.5, context=["x", 3]),
    "force": lambda m: m.compact(0.5, force=1),
    "plan": lambda m: m.apply({}),
    "embedder": lambda m: m.reembed(object()),
    "ids of a text": lambda m: m.store.texts.put([0, 0], ["a", "b"]),
    "texts of ids": lambda m: m.store.texts.put([0], ["a", "b"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_are_refused_and_change_nothing(tmp_path: Path, name: str) -> None:
    with opened(tmp_path) as memory:
        memory.remember("what was there before")
        before = memory.get(0), memory.store.stats().tick, len(memory)
        with pytest.raises((InvalidType, InvalidValue)) as caught:
            CALLS[name](memory)
        word = name.split(",")[0].split(" of ")[0]
        assert word in str(caught.value)
        assert (memory.get(0), memory.store.stats().tick, len(memory)) == before


OPTIONS: dict[str, dict[str, Any]] = {
    "embedder": {"embedder": Bag},
    "payloads": {"payloads": 1},
    "near_duplicate": {"near_duplicate": 0.0},
    "near_duplicate, NaN": {"near_duplicate": float("nan")},
    "near_duplicate, text": {"near_duplicate": "0.9"},
    "background": {"background": "yes"},
    "namespace": {"namespace": "No Such"},
    "Budget": {"budget": -1},
    "embedder, fingerprint": {"embedder": Bag(fingerprint="line\nbreak")},
    "embedder, long": {"embedder": Bag(fingerprint="x" * 201)},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_wrong_options_are_refused_and_make_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises((InvalidType, InvalidValue), match=name.split(",")[0]):
        opened(tmp_path, **OPTIONS[name])
    assert list(tmp_path.iterdir()) == []


def test_it_is_closed(tmp_path: Path) -> None:
    memory = opened(tmp_path)
    memory.close()
    memory.close()
    with pytest.raises(ValueError, match="closed"):
        memory.remember("x")


def test_it_is_made_in_every_kind_of_store(tmp_path: Path) -> None:
    for held in ("float32", "tiered", "float16", "int8"):
        with opened(tmp_path, namespace=held, vectors=held) as memory:
            memory.remember_many(facts(30))
            assert [one.added for one in memory.remember_many(facts(31))] == [False] * 30 + [True]
            assert memory.recall(facts(30)[7], 1)[0].text == facts(30)[7]


def test_one_call_of_the_class(tmp_path: Path) -> None:
    assert AgentMemory.open(tmp_path / "a.memsift", "x", Bag(8), 5).store.budget == Budget(5)
