"""A made-up memory to look at: six weeks of an assistant's notes, with searches, feedback, pins and forgetting.

    PYTHONPATH=src python tools/page_demo.py demo.memsift

Everything in it is invented, from templates and a fixed seed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memsift.agent import AgentMemory
from memsift.budget import Budget

START = 1_780_300_000.0  # a Monday in June 2026
DAY = 86_400.0

NAMES = ["Mira", "Jonas", "Aiko", "Tomás", "Leila", "Piotr", "Ines", "Samir", "Freya", "Bela"]
SERVICES = ["billing", "search", "login", "gateway", "reports", "mailer", "catalogue", "sync"]
TOPICS: dict[str, tuple[list[str], dict[str, list[str]], list[str]]] = {
    "deploy": (
        [
            "{service} {version} was deployed to {place} at {hour}:{minute}; health checks green after {n} s",
            "Rolled {service} back to {version}: {why}",
            "Deploys of {service} need {who}'s approval since the outage in {month}",
            "The {place} cluster of {service} runs {n} replicas, limit {n} GiB each",
        ],
        {
            "place": ["staging", "production", "the Frankfurt region", "the canary pool"],
            "why": ["error rate above 2 %", "the migration locked a table", "memory kept growing"],
        },
        ["deploy {service} to production", "rollback of {service}", "who approves deploys"],
    ),
    "bugs": (
        [
            "Bug in {service}: {what} when {when}. Fixed by {who} in {version}",
            "{service} logs a timeout every {n} minutes; {who} suspects {what}",
            "The flaky test in {service} fails when {when}",
            "Stack trace in {service}: null user id, seen {n} times since {month}",
        ],
        {
            "what": ["a race in the cache", "a leaked connection", "dates in the wrong time zone",
                     "an index that was never used", "a retry without backoff"],
            "when": ["two requests arrive at once", "the token has expired", "the list is empty",
                     "the clock is set back", "the disk is nearly full"],
        },
        ["error in {service}", "why does {service} time out", "flaky test", "race condition"],
    ),
    "taste": (
        [
            "{who} prefers {pick} over {other}",
            "{who} asked for shorter answers, with {pick} where it helps",
            "In reviews {who} wants {pick}, never {other}",
        ],
        {
            "pick": ["tabs", "plain SQL", "bullet points", "small commits", "dark mode", "diagrams",
                     "type annotations", "early returns", "tables"],
            "other": ["spaces", "an ORM", "long paragraphs", "squashed branches", "emoji",
                      "nested ifs", "screenshots"],
        },
        ["what does {who} prefer", "how should answers look", "code review style"],
    ),
    "travel": (
        [
            "{who}'s train to {city} leaves at {hour}:{minute} from platform {n}",
            "Hotel in {city}: booked for {who}, {n} nights, breakfast included",
            "{who} is in {city} until the {n}th and answers mail in the evening",
            "Flight to {city} moved to {hour}:{minute}; seat {n}C",
        ],
        {"city": ["Lisbon", "Kyoto", "Gdańsk", "Oslo", "Trieste", "Montréal", "Ghent", "Cádiz"]},
        ["train to {city}", "hotel for {who}", "when is the flight"],
    ),
    "food": (
        [
            "{who} is allergic to {food}; {dish} is fine",
            "Recipe for {dish}: {n} g {food}, simmer for {n} minutes, salt at the end",
            "The {dish} at the corner place was good; {who} wants to go again in {month}",
            "Shopping: {food}, {food}, and something for {dish}",
        ],
        {
            "food": ["walnuts", "lentils", "shellfish", "buckwheat", "fennel", "celery", "barley"],
            "dish": ["ramen", "minestrone", "pierogi", "shakshuka", "risotto", "dal", "bouillabaisse"],
        },
        ["allergies", "recipe for {dish}", "what to cook with {food}"],
    ),
    "meetings": (
        [
            "Weekly with {who}: {agenda} is decided, {agenda} waits for numbers",
            "{who} will present {agenda} on the {n}th, {n} minutes",
            "Decision: {agenda} moves to {month}; {who} tells the customers",
            "{who} wants the notes of the {agenda} meeting by Friday noon",
        ],
        {"agenda": ["the roadmap", "hiring", "the price change", "the audit", "on-call pay",
                    "the office move", "the partner contract"]},
        ["what was decided about {agenda}", "notes of the weekly", "when does {who} present"],
    ),
    "health": (
        [
            "{who} ran {n} km in the morning, knee felt {how}",
            "Dentist for {who} on the {n}th at {hour}:{minute}",
            "{who} sleeps better without coffee after {hour} o'clock",
            "Physio exercises: {n} minutes, twice a day, {how} so far",
        ],
        {"how": ["fine", "stiff", "better", "a bit sore"]},
        ["running", "dentist appointment", "sleep and coffee"],
    ),
    "money": (
        [
            "Invoice {n}-{minute} of {n}00 EUR was paid on the {n}th of {month}",
            "The {service} subscription renews in {month} at {n} EUR a month",
            "{who} keeps receipts of {month} in the blue folder",
            "Budget for {month}: {n},000 EUR, of which {n} % are travel",
        ],
        {},
        ["unpaid invoices", "subscription renewal", "budget for {month}"],
    ),
}  # fmt: skip
MONTHS = ["January", "March", "April", "May", "June", "July"]
LASTING = [
    "The user's name is Mira Okafor; she writes English and German",
    "Never push to main without asking Mira first",
    "Production secrets are never to be printed, not even masked",
    "Mira is allergic to walnuts",
    "The team's time zone is Europe/Berlin",
]


def said(rng: random.Random, template: str, words: dict[str, list[str]]) -> str:
    """A template with its gaps filled, each gap anew."""
    common = {
        "who": NAMES, "service": SERVICES, "month": MONTHS,
        "version": [f"{a}.{b}.{c}" for a in (2, 3) for b in range(12) for c in range(6)],
        "hour": [str(h) for h in range(7, 20)], "minute": [f"{m:02}" for m in range(0, 60, 5)],
        "n": [str(n) for n in range(2, 29)],
    }  # fmt: skip
    choices, out = {**common, **words}, template
    while "{" in out:
        before, _, rest = out.partition("{")
        name, _, after = rest.partition("}")
        out = before + rng.choice(choices[name]) + after
    return out[0].upper() + out[1:]


def days(rng: random.Random, count: int) -> Iterator[list[tuple[str, str]]]:
    """For each day its notes with their topics; what is on people's minds changes from week to week."""
    topics = list(TOPICS)
    for day in range(count):
        busy = [topics[(day // 7 + i) % len(topics)] for i in range(3)]
        chosen = rng.choices(topics + busy * 3, k=rng.randint(15, 23))
        yield [(t, said(rng, rng.choice(TOPICS[t][0]), TOPICS[t][1])) for t in chosen]


def build(path: Path, *, embedder: Any = None, length: int = 42, seed: int = 7) -> AgentMemory:
    """The made-up memory in a new file, open."""
    rng, now = random.Random(seed), [START]
    memory = AgentMemory.open(
        path,
        embedder=embedder,
        budget=Budget(entries=640, cost=14_000),
        clock=lambda: now[0],
        grace_seconds=21 * DAY,
    )
    kept = memory.remember_many(LASTING, pinned=True, importance=1.0)
    for day, notes in enumerate(days(rng, length)):
        now[0] = START + day * DAY + 8 * 3_600
        for topic, text in notes:
            now[0] += rng.uniform(60, 1_800)
            memory.remember(text, metadata={"topic": topic})
        for topic in rng.choices([t for t, _ in notes], k=6):
            now[0] += rng.uniform(60, 900)
            hits = memory.recall(said(rng, rng.choice(TOPICS[topic][2]), TOPICS[topic][1]), 5)
            helped = [hit.id for hit in hits if rng.random() < 0.5]
            if helped:
                memory.feedback(helped)
        if day % 9 == 8 and len(memory.store) > 100:
            now[0] += 3_600
            memory.compact(0.86)
        if day in (20, 37) and (gone := memory.store.stats().regret.restorable):
            memory.restore(gone[:4])
    memory.pin([kept[0].id])
    return memory


if __name__ == "__main__":
    with build(Path(sys.argv[1])) as made:
        print(made.stats().store)
