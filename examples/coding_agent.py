"""What a coding agent learned at work, kept within a budget, with reasons.

    python examples/coding_agent.py [REPOSITORY]

Reads the subjects of a git log (or the made-up one below), remembers them, looks things up as the work goes on, says
what it would forget and why, forgets, and then admits what it should have kept.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from memsift.agent import AgentMemory

LOG = """
Parser: read TOML configuration files
Add a command line with click
Cache parsed files by their SHA-256
Cache: never trust the modification time, NFS lies about it
Tests must not touch the network; use the fixture fake_server
Fix typo in the README
Retry HTTP requests three times with backoff
Timeouts are 30 seconds, the load balancer cuts at 60
Login tokens expire after one hour; refresh at 50 minutes
Store tokens in the keyring, never in the configuration file
Migrate the database to schema 4: users.email is unique
Bump dependencies
Worker: a job that fails five times goes to the dead letter queue
Log rotation: keep seven days
Fix typo in the changelog
Release 0.2.0
"""
QUESTIONS = [
    "how long do login tokens live?",
    "why is the cache keyed by SHA-256 and not by modification time?",
    "what happens to a job that keeps failing?",
    "which timeout does the load balancer have?",
]


def subjects(repository: str | None) -> list[str]:
    if repository is None:
        return LOG.strip().splitlines()
    command = ["git", "-C", repository, "log", "--reverse", "--no-merges", "--format=%s"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        AgentMemory.open(Path(folder) / "work.memsift", archive=1_000) as memory,
    ):
        told = memory.remember_many(subjects(sys.argv[1] if len(sys.argv) > 1 else None))
        print(f"remembered {len(told)} commits, {len(memory)} of them different\n")
        for question in QUESTIONS:
            best = memory.recall(question, k=3)[0]
            memory.feedback(best.id)
            print(f"? {question}\n  {best.text}")

        plan = memory.plan(target=0.5)
        print(f"\n{plan}\n\nfirst to go:")
        for gone in memory.get([int(plan.view.ids[row]) for row in plan.worst()[:5]]):
            print(f"  {gone.text}")
        print(f"\n{memory.apply(plan)}\n")
        head = memory.store.audit.head()  # to be kept elsewhere: it proves what was decided

        for question in ["how do we read configuration files?", "how long are logs kept?"]:
            memory.recall(question, k=3)
        regret = memory.stats().store.regret
        print(f"{regret}\n")
        memory.restore(regret.restorable)
        for back in memory.get(regret.restorable):
            print(f"  came back: {back.text}")
        print(f"\nthe audit chain: {memory.store.audit.verify(head)}")


if __name__ == "__main__":
    main()
