"""The library alone: your own vectors, a budget, and policies to choose from or to write down.

    python examples/library.py

A reader writes 700 notes on 40 topics and looks things up, some topics far more often than others. There is room for
a seventh of the notes. Which policy still finds what the reader wants?
"""

import tempfile
from pathlib import Path

import numpy as np

from memsift import CoherencePolicy, LfuPolicy, LruPolicy, MemoryStore
from memsift.signals import Coherence, Recency

DIM, TOPICS, NOTES, BUDGET = 32, 40, 700, 100
chance = np.random.default_rng(7)


def near(topics: np.ndarray) -> np.ndarray:
    """Vectors around the middles of some topics."""
    return middles[topics] + 0.5 * chance.normal(size=(len(topics), DIM))


middles = chance.normal(size=(TOPICS, DIM))
# The first topic is wanted forty times as often as the last (Zipf's law).
interest = 1 / np.arange(1, TOPICS + 1)
notes = near(chance.integers(TOPICS, size=NOTES))
queries = near(chance.choice(TOPICS, size=NOTES, p=interest / interest.sum()))

POLICIES = {
    "LRU": LruPolicy(),
    "LFU": LfuPolicy(),
    "coherence": CoherencePolicy(),
    "our own": 0.7 * Coherence() + 0.3 * Recency(),
}


def still_found(store: MemoryStore) -> float:
    """The share of the best three notes ever written that the store still returns, over the second half."""
    everything = MemoryStore(DIM)  # no budget; gives out the same ids
    found = 0
    for i in range(NOTES):
        store.add(notes[i])
        everything.add(notes[i])
        hits = {hit.id for hit in store.search(queries[i], k=3)}
        if i >= NOTES // 2:
            found += len(hits & {hit.id for hit in everything.search(queries[i], k=3)})
    return found / (3 * NOTES / 2)


def main() -> None:
    print(f"{NOTES:,} notes, room for {BUDGET}\n\npolicy      still found")
    for name, policy in POLICIES.items():
        store = MemoryStore(DIM, BUDGET, policy)
        share = still_found(store)
        print(f"{name:10}  {share:4.0%}  {'#' * round(40 * share)}")

    # The last store goes on: look before you leap, then leap, then take it along.
    plan = store.plan(target=0.5)
    closest = int(plan.view.ids[plan.worst()[-1]])
    why = plan.explain(closest)
    print(f"\n{plan}\n\nclosest call: note {closest}, {why['margin']:+.3f} from the cut")
    print(f"{store.apply(plan)}\n{store.stats().regret}")
    with tempfile.TemporaryDirectory() as folder:
        store.save_rvf(Path(folder) / "notes.rvf")
        print(f"\nfrom the file: {MemoryStore.load_rvf(Path(folder) / 'notes.rvf')}")


if __name__ == "__main__":
    main()
