"""docs/forgetting.md: words here, figures from the cells, nothing by hand between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from forgetting_facts import GRAPH, Facts
from forgetting_questions import loaded
from forgetting_tables import (
    OURS,
    REFERENCE,
    against_table,
    by_variant,
    feedback_table,
    gate_table,
    loss_table,
    name_of,
    online_table,
    points,
    regret_table,
    signed,
    table,
    twin_of,
    variant_table,
    workload_table,
)

from memsift.evaluation.cell import Cell
from memsift.evaluation.suite import EXPECTED, ON_LOGS

TITLES = {
    "locomo": "LoCoMo: long chats of two people, questions with evidence",
    "taubench": "tau-bench: customer-service agent runs",
    "intercode": "InterCode: SQL, bash and capture-the-flag agent runs",
    "beam": "BEAM: long chats of a user with an assistant",
    "manual": "Python's manual: looked up while working on the standard library",
}

WORDS = Path(__file__).with_name("forgetting_words.md")


def said(section: str, words: dict[str, str]) -> str:
    """A section of the prose, with its numbers."""
    sections = re.split(r"^=== (\w+)\n", WORDS.read_text(), flags=re.MULTILINE)
    return dict(zip(sections[1::2], sections[2::2], strict=True))[section].format(**words)


def page(facts: Facts) -> str:
    """The whole document."""
    words = facts.prose()
    about = facts.about
    words["budgets"] = ", ".join(f"{100 * b:.4g} %" for b in about["budgets"])
    gone = "; ".join(about["missing"])
    words["missing"] = f" Missing here: {gone}." if gone else ""
    parts = [said("opening", words), *_workloads(facts)]
    parts += [said("regret", words), *regret_table(facts.ranked(facts.real))]
    if facts.made:
        parts += [
            "### Synthetic streams, by exact neighbours\n",
            *regret_table(facts.ranked(facts.made)),
        ]
    if facts.logs:
        parts.append("### Agent logs, by fidelity\n")
        parts += regret_table(facts.ranked(facts.logs, "fidelity"))
    parts += [
        "### Ours against three, place by place\n",
        *against_table([*facts.real, *facts.made]),
    ]
    parts += [said("losses", words), *loss_table(facts.lost())]
    parts += ["## Five questions that the reference leaves open\n", *_questions(facts, words)]
    gate = facts.data["questions"]["gate"]
    if gate["measured"]:
        parts += [said("gate", words), *gate_table(gate)]
    if asked := facts.data["questions"].get("feedback"):
        parts += [said("feedback", words), *feedback_table(asked, facts.about["budgets"])]
    parts.append(said("weights_from", words))
    return "\n".join(parts).rstrip("\n") + "\n"


def _workloads(facts: Facts) -> Iterator[str]:
    yield said("reading", {"fidelity": "; fidelity on agent logs"})
    groups = by_variant(facts.cells)
    names = list(dict.fromkeys(workload for workload, _ in groups))
    made = [n for n in names if n not in (*EXPECTED, "manual")]
    for name in names:
        if name == (made or [""])[0]:
            yield "### Synthetic streams\n"
            yield "![Found by budget](forgetting-synthetic.png)\n"
        if name not in made:
            yield f"### {TITLES.get(name, name)}\n"
            yield f"![Found and kept by budget](forgetting-{name}.png)\n"
        for (workload, variant), group in groups.items():
            if workload == name:
                yield f"#### {workload} · {variant}\n"
                twin = twin_of(variant)
                yield from variant_table(group, None if twin is None else groups[workload, twin])


def _questions(facts: Facts, words: dict[str, str]) -> Iterator[str]:
    asked = facts.data["questions"]
    if mixes := loaded(asked["weights"]):
        yield said("weights", words)
        yield from workload_table(mixes)
    yield said("online", words)
    yield from online_table(asked["online"])
    if "speed_compact" in words:
        yield said("online_cost", words)
    yield said("real", words)
    yield from _real_corpora(facts)
    if floors := loaded(asked["floors"]):
        yield said("floors", words)
        yield from workload_table(floors)
        yield "Kept:\n"
        yield from workload_table(floors, "kept")
    if places := facts.graph_places():
        yield said("graphs", words)
        rows = [
            [
                p.name,
                points(p.entries[GRAPH].recall),
                signed(p.against(GRAPH, REFERENCE)),
                signed(p.against(GRAPH, "random")),
                signed(p.against(GRAPH, p.best().policy))
                if p.best().policy != GRAPH
                else "is the best",
            ]
            for p in places
        ]
        yield from table(["where", "graph", "− coherence", "− random", "− best fixed"], rows)


def _real_corpora(facts: Facts) -> Iterator[str]:
    rows = []
    for p in facts.real:
        if p.budget == 0.25 and not p.variant.endswith("-costless"):
            best = p.best()
            figures = (p.entries[n].recall for n in (REFERENCE, "random"))
            rows.append(
                [
                    f"{p.workload} · {p.variant}",
                    *(points(f) for f in figures),
                    signed(p.against(REFERENCE, "random")),
                    f"{points(best.recall)} {name_of(best.policy)}",
                    points(p.entries[OURS].recall),
                ]
            )
    yield from table(["where", "coherence", "random", "difference", "best fixed", "adaptive"], rows)


def pictures(facts: Facts) -> dict[str, Sequence[Cell]]:
    """File name and cells of each picture of curves."""
    real = list(dict.fromkeys(p.workload for p in facts.real))
    cells = [
        c for c in facts.cells if not c.variant.endswith("-costless") and c.policy not in ON_LOGS
    ]
    found: dict[str, Any] = {
        f"forgetting-{n}.png": [c for c in cells if c.workload == n] for n in real
    }
    made = [c for c in cells if c.workload not in real]
    return found | ({"forgetting-synthetic.png": made} if made else {})
