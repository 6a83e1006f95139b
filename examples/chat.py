"""A chat that remembers what it was told, in a memory of 140 tokens.

    python examples/chat.py [FILE]

What ends with a question mark is looked up; anything else is kept, and what it pushes out is told. `!` before a line
pins it. Run it twice on one FILE: it still knows you. Without a terminal it talks to itself, from a script.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from memsift import Budget
from memsift.agent import AgentMemory

SCRIPT = """
!My name is Ines and I am allergic to shellfish.
I live in Lisbon, in a flat above a bakery.
The sourdough on Fridays is the best in the street.
My brother Rui repairs boats in Setúbal.
The ferry to Setúbal was late again this morning.
It rained all day yesterday.
Where does my brother work?
I bought a red bicycle from a neighbour.
The bicycle needs a new chain before Sunday.
What does the bicycle need?
My flight to Oslo leaves on 12 May at seven.
The hotel in Oslo is called Fjordblikk.
What is the hotel in Oslo called?
I watched a film about lighthouses.
The film was long, but the music was lovely.
My passport number ends with 4417.
What do I know about my brother's boats?
What am I allergic to?
"""


def lines() -> Iterator[str]:
    """What the user types, or else the script."""
    if sys.stdin.isatty():
        while line := input("you     ").strip():
            yield line
    else:
        for line in SCRIPT.strip().splitlines():
            print(f"you     {line}")
            yield line


def answer(memory: AgentMemory, question: str) -> None:
    found = memory.recall(question, k=2)
    if not found:
        print("memory  (nothing yet)")
        return
    best = found[0]
    memory.feedback(best.id)  # the answer was made from it: that is use, not only a hit
    print(f"memory  {best.text}   [{best.score:.2f}, used {best.use_count + 1} times]")


def keep(memory: AgentMemory, text: str) -> None:
    told = memory.remember(text.removeprefix("!"), pinned=text.startswith("!"))
    if not told.added:
        print("memory  (I knew that)")
    for gone in memory.get(list(told.evicted)):
        print(f"        forgot: {gone.text if gone else '(erased)'}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "chat.memsift"
        with AgentMemory.open(path, budget=Budget(cost=140)) as memory:
            for line in lines():
                (answer if line.endswith("?") else keep)(memory, line)
            stats = memory.stats().store
            print(f"\n{stats.entries} facts, {stats.size.cost} of {stats.budget.cost} tokens")


if __name__ == "__main__":
    main()
