"""A new user's first round with `memsift serve`, by the official client; writes docs/mcp-transcript.md.

python tools/mcp_transcript.py            # write the page
python tools/mcp_transcript.py --print    # print it instead
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

PAGE = Path(__file__).parents[1] / "docs" / "mcp-transcript.md"

# Fifty facts of a small company's week, as an agent might note them.
FACTS = """
Mara Lindqvist leads the billing team and prefers short written updates.
The invoice service is written in Go and lives in the repository ledger-go.
Production runs in the Frankfurt region; staging runs in Dublin.
The database password is rotated on the first Monday of each month.
Tomás is on parental leave until the end of March.
Customers in Norway must be billed in kroner, not in euros.
The nightly export failed on Tuesday because the disk was full.
Deployments are frozen from the twentieth of December to the second of January.
The office in Lisbon closes at six in the evening.
Priya owns the mobile app and the push notifications.
The staging certificate expires on the ninth of May.
Refunds above five hundred euros need a second signature.
The meeting room Baltic has no projector.
Use tabs, not spaces, in the Makefile of the exporter.
The customer Havgaard asked for a dark mode.
The search index is rebuilt every Sunday at three in the morning.
Load tests are run with the tool vegeta, at two hundred requests per second.
The coffee machine on the third floor is broken again.
The contract with the payment provider ends in October.
Feature flags are kept in the file flags.yaml at the root of the repository.
Jonas found that the memory leak came from the image cache.
The team lunch is on Thursdays at half past twelve.
The public API allows sixty calls per minute per key.
Backups are kept for thirty-five days in a bucket in Stockholm.
The wifi password for guests hangs beside the reception.
Error reports go to the channel called red-lights.
The new logo may not be used before the launch in June.
The parser must accept dates like 2026-11-30 and 30.11.2026.
Elif is the person to ask about tax rules in Turkey.
The printer needs toner of the kind TN-2420.
Customer support answers within four hours on working days.
The old dashboard will be switched off in February.
The retry queue drops a message after eight attempts.
Parking at the office costs twelve euros per day.
The design review of the checkout page was moved to Friday.
The staging database may be wiped at any time.
Mara is allergic to peanuts.
The load balancer times out after ninety seconds.
The intern starts on Monday and needs a laptop with Linux.
The word tenant means a paying organisation, never a single user.
The heating in the server room must stay below twenty degrees.
Release notes are written by whoever merged the largest change.
The key for the bicycle shed is with Henrik.
The test suite takes eleven minutes on two machines.
Discount codes are case-insensitive.
The audit by the bank takes place in the second week of April.
The plant by the window wants water twice a week.
The monitoring bill doubled because of debug logs.
Timestamps are stored in UTC and shown in the customer's time zone.
Lunch vouchers may not be used at weekends.
""".strip().splitlines()

# (question, number of the fact that answers it). The first ten are asked before anything is forgotten.
QUESTIONS = [
    ("Which language is the invoice service written in?", 1),
    ("In which currency do we bill Norwegian customers?", 5),
    ("Why did the nightly export fail?", 6),
    ("When are deployments frozen?", 7),
    ("Which refunds need a second signature?", 11),
    ("How many API calls per minute are allowed?", 22),
    ("Where are backups kept, and for how long?", 23),
    ("After how many attempts does the retry queue drop a message?", 32),
    ("What does the word tenant mean?", 39),
    ("How are timestamps stored?", 48),
    ("Who leads the billing team?", 0),
    ("In which region does production run?", 2),
    ("Who owns the push notifications?", 9),
    ("When does the staging certificate expire?", 10),
    ("Where are feature flags kept?", 19),
    ("What caused the memory leak?", 20),
    ("Where do error reports go?", 25),
    ("After how many seconds does the load balancer time out?", 37),
    ("How long does the test suite take?", 43),
    ("When is the audit by the bank?", 45),
]
ASKED = 10
HITS = 3


class Transcript:
    """Calls of one client, written down as they go."""

    def __init__(self, client: Client) -> None:
        self.client, self.lines = client, []  # type: ignore[var-annotated]

    def say(self, *words: str) -> None:
        self.lines += words

    async def call(self, name: str, arguments: dict[str, Any], *show: str) -> dict[str, Any]:
        """Call a tool, write down the call and what of its reply is asked to be shown."""
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result.content
        found: dict[str, Any] = result.structured_content or {}
        if show:
            shown = {key: masked(key, found[key]) for key in show}
            self.say("```", f"{name} {short(arguments)}", f"→ {short(shown, 1200)}", "```", "")
        return found

    async def recall(self, questions: list[tuple[str, int]], ids: list[int]) -> int:
        """How many questions find their fact among the first hits; leaves no trace."""
        good = 0
        for question, fact in questions:
            found = await self.call("memory_search", {"query": question, "k": HITS, "touch": False})
            good += ids[fact] in [hit["id"] for hit in found["hits"]]
        return good


def short(data: Any, most: int = 300) -> str:
    text = json.dumps(data, ensure_ascii=False)
    return text if len(text) <= most else text[:most] + " …"


def masked(key: str, value: Any) -> Any:
    """Without what differs from run to run: hashes and times."""
    if key in ("audit_head", "head", "digest", "hash"):
        return "…"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        keep = ("id", "score", "text", "verdict", "margin", "kind", "before", "after", "evicted")
        return [{k: rounded(v) for k, v in item.items() if k in keep} for item in value]
    return rounded(value)


def rounded(value: Any) -> Any:
    return round(value, 2) if isinstance(value, float) else value


async def transcript(file: Path, embedder: str = "wordllama") -> str:
    """The page, from a run on a new file."""
    source = str(Path(__file__).parents[1] / "src")
    command = [sys.executable, "-m", "memsift", "serve", str(file), "--embedder", embedder]
    environment = {**os.environ, "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"}
    server = StdioServerParameters(command=command[0], args=command[1:], env=environment)
    with open(os.devnull, "w") as nowhere:
        from mcp.client.stdio import stdio_client

        async with Client(stdio_client(server, errlog=nowhere)) as client:
            return await round_trip(Transcript(client))


async def round_trip(page: Transcript) -> str:
    page.say(
        "# A first round over MCP",
        "",
        "`tools/mcp_transcript.py` started `memsift serve demo.memsift`, talked to it by the official Python client",
        "and wrote this page; a test runs it again and compares. Hashes are left out, scores rounded, long lines cut.",
        "",
        "## Fifty facts go in",
        "",
    )
    added = await page.call(
        "memory_add", {"texts": FACTS, "metadata": {"kind": "fact"}}, "added", "evicted", "notice"
    )
    assert added["added"] == len(FACTS)
    ids = added["ids"]
    page.say("The same fact once more refreshes what is there:", "")
    await page.call("memory_add", {"text": FACTS[0]}, "ids", "added", "refreshed")

    page.say("## Search, and say what helped", "")
    await page.call("memory_search", {"query": QUESTIONS[0][0], "k": HITS}, "hits", "omitted")
    for question, fact in QUESTIONS[:ASKED]:
        await page.call("memory_search", {"query": question, "k": HITS})
        await page.call("memory_feedback", {"ids": [ids[fact]]})
    page.say(
        "Ten questions were asked like this, each with feedback for the fact that answered it. The last one:",
        "",
    )
    await page.call("memory_feedback", {"ids": [ids[QUESTIONS[ASKED - 1][1]]]}, "ids", "used")
    page.say("An allergy is never to be forgotten:", "")
    await page.call("memory_pin", {"ids": [ids[36]]}, "ids", "pinned")

    asked, fresh = QUESTIONS[:ASKED], QUESTIONS[ASKED:]
    before = await page.recall(asked, ids), await page.recall(fresh, ids)

    page.say("## What would be forgotten", "")
    await page.call(
        "memory_plan",
        {"target_pct": 50, "limit": 3},
        "evict",
        "keep",
        "needs_force",
        "victims",
        "omitted",
    )
    page.say("## Forget half", "")
    done = await page.call(
        "memory_compact",
        {"target_pct": 50},
        "evicted",
        "survivors",
        "spared",
        "policy",
        "audit_head",
    )
    after = await page.recall(asked, ids), await page.recall(fresh, ids)

    page.say("## Why, and back again", "")
    gone = done["evicted_ids"]
    await page.call("memory_explain", {"id": ids[36]}, "id", "verdict", "rank", "of")
    await page.call("memory_explain", {"id": gone[0]}, "id", "verdict")
    lost = [ids[fact] for _, fact in QUESTIONS if ids[fact] in gone]
    back = (lost or gone)[:2]
    await page.call("memory_restore", {"ids": back}, "ids", "evicted")
    await page.call("memory_audit", {"last": 2}, "status", "records", "head", "last")
    await page.call(
        "memory_stats", {}, "entries", "pinned", "archived", "size", "evicted", "wanted_again"
    )

    page.say(
        "## Recall before and after",
        "",
        f"Share of questions that find their fact among the first {HITS} hits. Half of the memory went in between.",
        "",
        "| questions | before | after |",
        "|---|---|---|",
        row(f"the {ASKED} that had been asked, with feedback", before[0], after[0], len(asked)),
        row(f"{len(fresh)} that nobody had asked yet", before[1], after[1], len(fresh)),
    )
    return "\n".join(page.lines) + "\n"


def row(what: str, before: int, after: int, of: int) -> str:
    return f"| {what} | {before} of {of} | {after} of {of} |"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = anyio.run(transcript, Path(folder) / "demo.memsift")
    if "--print" in sys.argv:
        print(text, end="")
    else:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
