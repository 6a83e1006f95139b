"""What is replayed once for several cells must be what each of them would have found on its own."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from memsift.evaluation.drive import COSTLESS, VARIANTS, costless
from memsift.evaluation.life import replay, timeless
from memsift.evaluation.oracle import Future
from memsift.evaluation.replay import EVERYTHING, ORACLE, Lives, blind, grid
from memsift.evaluation.trace import Labels, Stream, Trace
from memsift.policies import LruPolicy, RandomPolicy, parse, to_text
from memsift.policies.registry import POLICIES

TEXTS = [name for name in POLICIES if name not in ("weighted", "floor", "graph")]


def talk(seed: int = 0, n: int = 120, costs: bool = True) -> Trace:
    """Two streams in which entries differ in cost, and questions come in bursts between them."""
    chance = np.random.default_rng(seed)
    lives = []
    for _ in range(2):
        memories = chance.standard_normal((n, 8)).astype(np.float32)
        asked = np.sort(chance.integers(1, n // 10, 60)) * 10
        needed = [sorted(set(chance.integers(0, at, 2).tolist())) for at in asked]
        queries = np.array([memories[rows[0]] for rows in needed])
        cost = chance.integers(1, 90, n) if costs else None
        lives.append(Stream(memories, queries, asked, Labels.from_lists(needed), cost=cost))
    return Trace("talk", lives)


def alone(trace: Trace, policy, variant: str, share: float) -> list[tuple[float, float, int]]:
    """Every stream replayed on its own, nothing shared, additions one by one."""
    free = costless(trace) if variant.endswith(COSTLESS) else trace
    found = []
    for stream in free.streams:
        one_by_one = dataclasses.replace(
            stream, created_at=np.arange(len(stream), dtype=np.float64)
        )
        tally = replay(
            one_by_one,
            policy,
            None if policy is None else int(share * len(stream)),
            VARIANTS[variant.removesuffix(COSTLESS)],
        )
        found.append((tally.recall, tally.kept, tally.evicted))
    return found


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("variant", ["end", "used", "used-costless"])
def test_a_shared_life_is_what_the_cell_would_have_lived(text, variant):
    trace, policy = talk(), parse(text)
    lives = Lives(trace)
    # Everything that could be shared has been lived before.
    for other in ("interleaved", "used", "interleaved-costless", "end"):
        lives.cell(policy, 0.3, other, 0.97)
    cell = lives.cell(policy, 0.3, variant, 0.97)
    if isinstance(policy, RandomPolicy):
        return  # its dice do not look at queries, so only their number differs
    tallies = alone(trace, policy, variant, 0.3)
    assert cell.evicted == sum(evicted for *_, evicted in tallies)
    scored = len(trace.streams[0].queries)
    assert cell.recall == pytest.approx(np.mean([r / scored for r, *_ in tallies]))
    assert cell.kept == pytest.approx(np.mean([k / scored for _, k, _ in tallies]))


def test_confirming_is_shared_only_by_policies_that_do_not_read_uses():
    lives = Lives(talk())
    for text, runs in (("lru", 1), ("adaptive", 2)):
        before = lives.ran
        for variant in ("interleaved", "used"):
            lives.cell(parse(text), 0.3, variant, 0.97)
        assert lives.ran - before == runs, text


def test_costs_are_shared_only_by_policies_that_do_not_read_them():
    lives = Lives(talk())
    for text, runs in (("coherence", 1), ("gdsf", 2), ("longest", 2)):
        before = lives.ran
        for variant in ("interleaved", "interleaved-costless"):
            lives.cell(parse(text), 0.3, variant, 0.97)
        assert lives.ran - before == runs, text
    # Where all cost the same the longest are the ones that were accessed last.
    assert lives.cell(parse("longest"), 0.3, "interleaved-costless", 0.97).recall == (
        lives.cell(LruPolicy(), 0.3, "interleaved", 0.97).recall
    )


def test_keep_everything_and_the_oracle_are_lived_once_for_variants_that_cannot_differ():
    lives = Lives(talk())
    cells = {
        variant: list(grid(lives.trace, [], [0.3], variant=variant, lives=lives))
        for variant in ("interleaved", "used", "used-costless")
    }
    assert lives.ran == 2
    assert [c.policy for c in cells["used"]] == [EVERYTHING, ORACLE]
    for variant, (_, oracle) in cells.items():
        tallies = [
            replay(s, None, 36, VARIANTS["used"], future=Future(s)) for s in lives.trace.streams
        ]
        own = np.mean([t.recall / t.scored for t in tallies])
        assert oracle.recall == pytest.approx(own), variant


def test_without_costs_an_entry_takes_the_default():
    seen = []

    class Spy(LruPolicy):
        needs = frozenset({"accessed_tick", "cost"})

        def terms(self, view):
            seen.append(set(view.cost.tolist()))
            return super().terms(view)

    list(grid(talk(), [Spy()], [0.3], variant="used-costless"))
    assert set.union(*seen) == {1}


def test_a_policy_that_reads_the_time_of_day_gets_its_entries_one_by_one():
    assert timeless(parse("lru"))
    assert timeless(parse("ebbinghaus"))
    assert not timeless(parse('ebbinghaus:clock="both"'))

    class Stranger:
        name = "stranger"

    assert not timeless(Stranger())


def test_only_order_and_chance_are_blind_to_queries():
    assert {to_text(parse(t)) for t in TEXTS if blind(parse(t))} == {"fifo", "oldest", "random"}
