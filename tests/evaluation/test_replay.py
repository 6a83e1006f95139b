"""A replay drives a real store; its figures are checked against stories told by hand, then pinned on real logs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsift.errors import InvalidValue
from memsift.evaluation.oracle import Future, OraclePolicy
from memsift.evaluation.readers import read_npz
from memsift.evaluation.replay import EVERYTHING, VARIANTS, Drive, grid, replay, steps
from memsift.evaluation.trace import Labels, Stream, Trace
from memsift.policies import CoherencePolicy, FifoPolicy, LruPolicy, RandomPolicy, parse_list

SHARED = Path(__file__).parents[2].parent / "shared" / "workloads"
A, B, C, D = np.eye(4, dtype=np.float32)


def stream(memories: list, questions: list[tuple[int, np.ndarray, list[int]]], **more) -> Stream:
    """Memories in order; questions as (memories stored by then, query vector, rows needed)."""
    asked, queries, needed = zip(*questions, strict=True)
    labels = Labels.from_lists(list(needed))
    return Stream(np.array(memories), np.array(queries), np.array(asked), labels, **more)


def test_a_store_of_two_forgets_the_oldest_of_three():
    # A, B, C are stored; the store holds two; A is asked for, then C.
    life = stream([A, B, C], [(3, A, [0]), (3, C, [2])])
    tally = replay(life, FifoPolicy(), 2, VARIANTS["log"])
    assert (tally.scored, tally.recall, tally.kept, tally.evicted) == (2, 1.0, 1.0, 1)


def test_what_was_asked_for_stays_under_lru():
    # A is asked for before C comes. If the search touches its one best hit, B leaves for C.
    life = stream([A, B, C], [(2, A, [0]), (3, A, [0])])
    assert replay(life, LruPolicy(), 2, Drive(touch=1)).recall == 2.0
    # If it touches all hits, A and B are equally fresh, and of equals the older leaves: A.
    assert replay(life, LruPolicy(), 2, Drive(touch=5)).recall == 1.0


def test_questions_at_the_end_leave_no_trace():
    life = stream([A, B, C, D], [(2, A, [0]), (4, A, [0])])
    # The first question found A; untouched by it, A was the oldest when D came.
    assert replay(life, LruPolicy(), 3, VARIANTS["end"]).recall == 1.0
    assert replay(life, LruPolicy(), 3, Drive(touch=1)).recall == 2.0


def test_each_memory_is_searched_for_before_it_is_stored_with_traffic():
    seen = []

    class Spy(LruPolicy):
        def terms(self, view):
            seen.append((len(view.context), view.tick))
            return super().terms(view)

    life = stream([A, B, C], [(3, A, [0])])
    replay(life, Spy(), 2, VARIANTS["end-traffic"])
    # Three probes and three additions before the one compaction.
    assert seen == [(3, 6)]


def test_confirmed_use_is_counted_only_for_hits_that_were_needed():
    used = []

    class Spy(LruPolicy):
        def terms(self, view):
            used.append(view.use_count.tolist())
            return super().terms(view)

    life = stream([A, B, C], [(2, A, [0]), (3, C, [2])])
    replay(life, Spy(), 2, VARIANTS["used"])
    assert used == [[1, 0, 0]]


def test_uses_in_the_log_are_passed_on_for_what_is_still_there():
    said = []

    class Spy(FifoPolicy):
        def terms(self, view):
            said.append(dict(zip(view.ids.tolist(), view.use_count.tolist(), strict=True)))
            return super().terms(view)

    # After A, B, C the store of two holds B and C; the log says that A and C helped.
    used = Labels.from_lists([[], [0, 2]])
    life = stream([A, B, C, D], [(1, A, [0]), (3, C, [2])], used=used)
    assert [e.kind for e in life.events()] == ["add", "query", "add", "add", "query", "use", "add"]
    replay(life, Spy(), 2, VARIANTS["log"])
    assert said[-1] == {1: 0, 2: 1, 3: 0}


def test_coverage_counts_groups_and_evidence_counts_memories():
    labels = Labels(np.array([0, 3]), np.array([0, 1, 2]), np.array([0, 0, 1]))
    life = Stream(np.array([A, B, C]), np.array([A + B + C]), np.array([3]), labels)
    # FIFO keeps B and C: both groups have a member, two of three memories are there.
    assert replay(life, FifoPolicy(), 2, VARIANTS["log"], coverage=True).recall == 1.0
    assert replay(life, FifoPolicy(), 2, VARIANTS["log"]).recall == pytest.approx(2 / 3)


def test_fidelity_is_counted_by_meaning():
    exact = Labels.from_lists([[0, 2]])
    said = np.array([0, 0, 2])  # B says what A says
    life = stream([A, A, C], [(3, A, [])], exact=exact, meaning=said)
    tally = replay(life, FifoPolicy(), 2, VARIANTS["log"])
    assert (tally.compared, tally.fidelity, tally.scored) == (1, 1.0, 0)


def test_queries_before_the_score_starts_are_asked_but_not_scored():
    life = stream([A, B, C, D], [(1, A, [0]), (4, D, [3])])
    assert replay(life, FifoPolicy(), 4, VARIANTS["log"], score_from=0.5).scored == 1


# ---- the oracle -------------------------------------------------------------------------------


def test_the_oracle_keeps_what_will_be_asked_for():
    life = stream([A, B, C, D], [(4, B, [1]), (4, A, [0])])
    assert replay(life, None, 3, VARIANTS["log"], future=Future(life)).recall == 2.0
    # With room for two, one of them must leave for each newcomer, who is never its own victim.
    assert replay(life, None, 2, VARIANTS["log"], future=Future(life)).recall == 1.0


def test_the_future_forgets_what_has_been_answered():
    life = stream([A, B], [(2, A, [0, 1]), (2, B, [1])])
    future = Future(life)
    assert future.need.tolist() == [0.5, 1.5]
    future.asked(0)
    assert future.need.tolist() == [0.0, 1.0]
    future.asked(1)
    assert future.need.tolist() == [0.0, 0.0]


def test_the_oracle_lets_go_first_of_what_stands_in_the_way():
    # Nothing else is needed; D outranks the needed C for its own question, B does not.
    life = stream([C, B, D], [(3, C + 2 * D, [0])])
    future = Future(life)
    assert future.harm.tolist() == [0, 0, 1]
    assert OraclePolicy(future).terms.__self__.future is future
    copied = future.copy()
    copied.asked(0)
    assert future.harm.tolist() == [0, 0, 1]


def test_one_member_of_each_group_is_enough_for_the_oracle():
    # Both questions are answered by either of their two; row 1 answers both.
    labels = Labels(np.array([0, 2, 4]), np.array([0, 1, 1, 2]), np.array([0, 0, 0, 0]))
    life = Stream(np.array([A, B, C]), np.array([A + B, B + C]), np.array([3, 3]), labels)
    assert Future(life).need.tolist() == [0.0, 2.0, 0.0]


# ---- the grid ---------------------------------------------------------------------------------


def chats() -> Trace:
    chance = np.random.default_rng(3)
    lives = []
    for n in (30, 60):
        memories = chance.standard_normal((n, 8)).astype(np.float32)
        asked = np.sort(chance.integers(1, n + 1, 20))
        needed = [[int(chance.integers(0, at))] for at in asked]
        queries = np.array([memories[rows[0]] for rows in needed])
        lives.append(Stream(memories, queries, asked, Labels.from_lists(needed)))
    return Trace("chats", lives)


def test_the_grid_has_every_policy_at_every_budget_with_ceilings_and_floor():
    policies = parse_list("random,lru,coherence:gamma=0.9")
    told: list[str] = []
    cells = list(
        grid(chats(), policies, [0.5, 0.2], variant="log", seeds=(0, 1), progress=told.append)
    )
    assert len(cells) == len(told) == steps(policies, [0.5, 0.2], (0, 1)) == 1 + 2 + 4 + 2 + 2
    assert {c.policy for c in cells} == {
        EVERYTHING,
        "oracle",
        "random",
        "lru",
        "coherence:gamma=0.9",
    }
    everything = cells[0]
    assert (everything.recall, everything.kept, everything.evicted) == (1.0, 1.0, 0)
    for cell in cells[1:]:
        assert 0.0 <= cell.recall <= 1.0
        assert cell.occupancy <= 1.0
        assert cell.evicted > 0
    assert {c.seed for c in cells if c.policy == "random"} == {0, 1}


def test_the_same_grid_twice_gives_the_same_cells():
    def run() -> list:
        cells = grid(chats(), [RandomPolicy(), CoherencePolicy()], [0.3], variant="used")
        return [{**c.to_dict(), "seconds": 0} for c in cells]

    assert run() == run()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"variant": "sideways"}, "variant must be one of"),
        ({"budgets": [0.0]}, "budgets must be a number above 0"),
        ({"budgets": [1.5]}, "budgets must be a number above 0"),
    ],
)
def test_what_cannot_be_replayed_is_refused(arguments, words):
    full = {"variant": "log", "budgets": [0.5], **arguments}
    with pytest.raises(InvalidValue, match=words):
        list(grid(chats(), [LruPolicy()], full.pop("budgets"), **full))


@pytest.mark.shared
@pytest.mark.skipif(
    not SHARED.is_dir(), reason="the workloads lie beside the repository, and here they do not"
)
def test_locomo_agrees_with_the_prototype():
    """End-traffic at watermark 0.8 (figures of the first prototype; random there is a single seed)."""
    trace = read_npz(SHARED / "locomo.npz", "end-traffic")
    policies = parse_list("random,lru,lfu,coherence")
    cells = list(grid(trace, policies, [0.5, 0.25, 0.1], variant="end-traffic", watermark=0.8))
    found = {(c.policy, c.budget): c.recall for c in cells}
    assert found[EVERYTHING, 1.0] == pytest.approx(0.419, abs=0.001)
    prototype = {
        "lru": (0.218, 0.114, 0.051),
        "lfu": (0.241, 0.131, 0.054),
        "coherence": (0.197, 0.102, 0.050),
        "oracle": (0.580, 0.638, 0.500),
    }
    for policy, figures in prototype.items():
        for budget, figure in zip((0.5, 0.25, 0.1), figures, strict=True):
            # Within two points: watermarks are rounded up here, which moves the last compaction of a chat.
            assert found[policy, budget] == pytest.approx(figure, abs=0.02), (policy, budget)
