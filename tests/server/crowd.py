"""Many servers on one file, each with a client that adds, searches and forgets: nothing acknowledged may be lost."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from mcp_talk import PATIENCE, Talk

from memsift.agent import AgentMemory

BUDGET = 150


@dataclass
class Crowd:
    """What came of it; `problems` are empty if all is well."""

    added: int = 0
    evicted: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


@dataclass
class Client:
    """What one client was told: ids that it added or deleted, and those that it pinned."""

    number: int
    added: dict[int, str] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    pinned: set[int] = field(default_factory=set)
    # Found without a text: only what another client deleted at that very moment may be.
    blank: set[int] = field(default_factory=set)
    calls: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def play(self, file: Path, start: threading.Barrier, seconds: float) -> None:
        chance = random.Random(self.number)
        try:
            with Talk(file) as talk:
                talk.hello()
                start.wait(PATIENCE)  # a process takes a while to be there
                until = time.monotonic() + seconds
                while time.monotonic() < until:
                    self._one(talk, chance)
                if (code := talk.close()) or talk.bad:
                    self.problems.append(f"exit {code}, {talk.bad[:1]}")
        except Exception as error:
            self.problems.append(f"client {self.number}: {type(error).__name__}: {error}")

    def _one(self, talk: Talk, chance: random.Random) -> None:
        kind = chance.random()
        mine = sorted(self.added.keys() - self.deleted - self.pinned)
        if kind < 0.5:
            texts = [
                f"client {self.number} fact {chance.getrandbits(60):015x}"
                for _ in range(chance.choice([1, 1, 5]))
            ]
            found = self._call(talk, "memory_add", {"texts": texts})
            if found is not None:
                self.added |= dict(zip(found["ids"], texts, strict=True))
        elif kind < 0.8:
            found = self._call(
                talk, "memory_search", {"query": f"client {self.number} fact", "k": 5}
            )
            for hit in [] if found is None else found["hits"]:
                if hit["text"] is None:
                    self.blank.add(hit["id"])
                elif not hit["text"].startswith("client "):
                    self.problems.append("a hit with another text")
        elif kind < 0.85 and len(self.pinned) < 3 and mine:
            if self._call(talk, "memory_pin", {"ids": [mine[-1]]}) is not None:
                self.pinned.add(mine[-1])
        elif kind < 0.9 and mine:
            if self._call(talk, "memory_delete", {"ids": [mine[0]]}) is not None:
                self.deleted.add(mine[0])
        elif kind < 0.95:
            self._call(talk, "memory_compact", {"target_pct": 80})
        else:
            stats = self._call(talk, "memory_stats", {})
            if stats is not None and stats["entries"] > BUDGET:
                self.problems.append(f"{stats['entries']} entries in a budget of {BUDGET}")

    def _call(self, talk: Talk, name: str, arguments: dict) -> dict | None:
        result = talk.call(name, arguments)
        self.calls[name] += 1
        if not result.get("isError"):
            return result["structuredContent"]
        words = result["content"][0]["text"]
        # Another client may have made it forget what this one added.
        if not ("busy" in words or (name in ("memory_pin", "memory_delete") and "ids" in words)):
            self.problems.append(f"{name}: {words}")
        return None


def run(file: Path, servers: int, seconds: float) -> Crowd:
    """`servers` processes, each busy for `seconds`, then a look at the file by itself."""
    AgentMemory.open(file, embedder="hashed", budget=BUDGET, archive=10**6).close()
    start = threading.Barrier(servers)
    clients = [Client(number) for number in range(servers)]
    threads = [threading.Thread(target=c.play, args=(file, start, seconds)) for c in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = Crowd()
    for client in clients:
        done.problems += client.problems
        done.calls += client.calls
        done.added += len(client.added)
    owners = Counter(id_ for client in clients for id_ in client.added)
    done.problems += [f"id {id_} was given out {n} times" for id_, n in owners.items() if n > 1]
    deleted = {id_ for client in clients for id_ in client.deleted}
    blank = {id_ for client in clients for id_ in client.blank}
    done.problems += [f"id {id_} was found without its text" for id_ in sorted(blank - deleted)]
    with AgentMemory.open(file, embedder="hashed") as memory:
        live, resting = set(memory.store.ids().tolist()), set(memory.store.archived().tolist())
        done.evicted = memory.stats().store.evicted
        for client in clients:
            for id_, text in client.added.items():
                here = id_ in live or id_ in resting
                if here == (id_ in client.deleted):
                    done.problems.append(f"id {id_} is {'still here' if here else 'lost'}")
                elif here and memory.get(id_)[0].text != text:
                    done.problems.append(f"id {id_} has another text")
            if lost := client.pinned - live:
                done.problems.append(f"pinned {sorted(lost)} left")
        if len(live) > BUDGET:
            done.problems.append(f"{len(live)} entries in a budget of {BUDGET}")
        verdict, whole = memory.store.audit.verify(), memory.store.verify()
        if verdict.status == "broken" or not whole.ok:
            done.problems.append(f"{verdict}; {whole}")
    return done
