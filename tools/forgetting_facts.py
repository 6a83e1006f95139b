"""The numbers that the prose of docs/forgetting.md is filled with, each computed from the cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from forgetting_questions import loaded
from forgetting_tables import OURS, REFERENCE, name_of, points, signed, spread_of

from memsift.evaluation.cell import Cell
from memsift.evaluation.drive import COSTLESS
from memsift.evaluation.hindsight import (
    Loss,
    Place,
    Regret,
    is_fixed,
    losses,
    places_of,
    regrets,
)
from memsift.evaluation.replay import EVERYTHING, ORACLE
from memsift.evaluation.statistics import RESAMPLES
from memsift.evaluation.suite import EXPECTED, ON_LOGS

GRAPH = "graph"


class Facts:
    """Cells as places, in the groups in which they are told: real ones by need, made-up ones, neighbours.

    Attributes
    ----------
    real : list of Place
        Workloads of people and agents, judged by what was needed.
    made : list of Place
        Synthetic streams, judged by their exact neighbours.
    logs : list of Place
        Those of `real` in which the exact neighbours are labelled too.
    """

    def __init__(self, data: dict[str, Any], cells: Sequence[Cell]) -> None:
        self.data = data
        self.cells = [c for c in cells if c.policy != GRAPH]
        self.all_cells = list(cells)
        self.about = data["about"]
        # The ends of the gate are shown beside, never as competitors.
        places = places_of(self.cells)
        real = {*EXPECTED, "manual"}
        self.real = [p for p in places if p.workload in real]
        self.made = [p for p in places if p.workload not in real]
        self.logs = [p for p in self.real if not math.isnan(p.best("fidelity").fidelity)]
        self.costless = [p for p in self.real if p.variant.endswith(COSTLESS)]

    def ranked(self, places: Sequence[Place], measure: str = "recall") -> list[Regret]:
        return [
            r for r in regrets(places, measure) if r.policy not in ON_LOGS or measure == "fidelity"
        ]  # type: ignore[arg-type]

    def lost(self) -> list[Loss]:
        return losses([*self.real, *self.made], OURS)

    def prose(self) -> dict[str, str]:
        """Name and text of every number in the prose."""
        real, made, fidelity = (
            self.ranked(self.real),
            self.ranked(self.made),
            self.ranked(self.logs, "fidelity"),
        )
        ours, theirs = _of(real, OURS), _of(real, REFERENCE)
        fixed = next(r for r in real if is_fixed(r.policy))
        lost = self.lost()
        better = [
            p for p in self.real if p.everything and p.entries[OURS].recall > p.everything.recall
        ]
        top = max(better or self.real, key=_share)
        worst = lost[0] if lost else None
        facts = {
            "cells": f"{len(self.cells):,}",
            "workloads": str(len({p.workload for p in self.real})),
            "synthetic": str(len({p.workload for p in self.made})),
            "real_places": str(len(self.real)),
            "made_places": str(len(self.made)),
            "fixed_policies": str(len(self.real[0].fixed)),
            "resamples": f"{RESAMPLES:,}",
            "watermark": f"{100 * self.about['watermark']:.4g}",
            "minutes": f"{(self.about['seconds'] + self.about.get('questions_seconds', 0.0)) / 60:.0f}",
            "occupancy": points(_mean(e.occupancy for p in self.real for e in p.fixed), 0),
            "ours_mean": points(ours.mean),
            "ours_worst": points(ours.worst),
            "ours_where": ours.where.name,
            "ours_within": f"{100 * ours.within:.0f}",
            "fixed_name": name_of(fixed.policy),
            "fixed_mean": points(fixed.mean),
            "fixed_worst": points(fixed.worst),
            "fixed_where": fixed.where.name,
            "theirs_mean": points(theirs.mean),
            "theirs_worst": points(theirs.worst),
            "theirs_where": theirs.where.name,
            "over_all": str(len(better)),
            "top_share": f"{100 * _share(top):.0f}",
            "top_where": top.name,
            "made_mean": points(_of(made, OURS).mean) if made else "–",
            "made_worst": points(_of(made, OURS).worst) if made else "–",
            "made_where": _of(made, OURS).where.name if made else "–",
            "made_theirs": points(_of(made, REFERENCE).mean) if made else "–",
            "lost": str(len(lost)),
            "all_places": str(len(self.real) + len(self.made)),
            "lost_most": f"{worst.place.name}, {points(-worst.by.value)} points behind {name_of(worst.best)}"
            if worst
            else "nowhere",
        }
        for other, word in ((REFERENCE, "theirs"), ("random", "random")):
            by = [p.against(OURS, other) for p in self.real]
            facts[f"{word}_above"] = str(sum(i.above for i in by))
            facts[f"{word}_below"] = str(sum(i.below for i in by))
            least = min(range(len(by)), key=lambda i: by[i].value)
            facts[f"{word}_least"] = f"{self.real[least].name}: {signed(by[least])}"
        for policy, word in (
            (OURS, "ours"),
            (REFERENCE, "theirs"),
            *zip(ON_LOGS, ("replay", "evidence"), strict=True),
        ):
            found = [p.entries[policy].fidelity for p in self.logs if policy in p.entries]
            facts[f"{word}_fidelity"] = points(_mean(found)) if found else "–"
        first = next((r for r in fidelity if is_fixed(r.policy)), None)
        facts["fidelity_best"] = name_of(first.policy) if first else "–"
        facts["best_fidelity"] = (
            points(_mean(p.entries[first.policy].fidelity for p in self.logs)) if first else "–"
        )
        facts |= self._feedback() | self._costs() | self._questions()
        return facts

    def _feedback(self) -> dict[str, str]:
        """What confirmed use is worth, where the same questions come with and without it."""
        by = {(p.workload, p.variant, p.budget): p.entries[OURS].recall for p in self.real}
        gains = [
            (value - by[w, v, b], f"{w} · {100 * b:.4g} %")
            for (w, variant, b), value in by.items()
            for v in ("interleaved", "log")
            if variant == "used" and (w, v, b) in by
        ]
        if not gains:
            return dict.fromkeys(("used_mean", "used_most", "used_least"), "–")
        return {
            "used_mean": f"{100 * _mean(g for g, _ in gains):+.1f}",
            "used_most": f"{100 * max(gains)[0]:+.1f} ({max(gains)[1]})",
            "used_least": f"{100 * min(gains)[0]:+.1f} ({min(gains)[1]})",
        }

    def _costs(self) -> dict[str, str]:
        """What knowing the entries' length is worth, by workload."""
        by = {(p.workload, p.variant, p.budget): p.entries[OURS].recall for p in self.real}
        words = []
        for workload in dict.fromkeys(p.workload for p in self.costless):
            gains = [
                by[w, v.removesuffix(COSTLESS), b] - value
                for (w, v, b), value in by.items()
                if w == workload and v.endswith(COSTLESS)
            ]
            words.append(f"{100 * _mean(gains):+.1f} on {workload}")
        return {"cost_worth": ", ".join(words) or "–"}

    def _questions(self) -> dict[str, str]:
        asked = self.data["questions"]
        facts = {}
        mixes = loaded(asked["weights"])
        if mixes:
            worst = spread_of(mixes)
            default = next(p for p in worst if p == REFERENCE)
            safest = min(worst, key=worst.__getitem__)
            firsts = {
                max(
                    (c for c in mixes if (c.workload, c.variant) == w), key=lambda c: c.recall
                ).policy
                for w in {(c.workload, c.variant) for c in mixes}
            }
            facts |= {
                "mixes": str(len(worst)),
                "mix_firsts": str(len(firsts)),
                "mix_default": points(worst[default]),
                "mix_safest": name_of(safest),
                "mix_safest_worst": points(worst[safest]),
            }
        rows = asked["online"]
        facts |= {
            "online_verdict": "Yes, exactly."
            if all(r["same"] == r["compactions"] for r in rows)
            else "Not quite.",
            "online_compactions": f"{sum(r['compactions'] for r in rows):,}",
            "online_same": f"{sum(r['same'] for r in rows):,}",
            "online_apart": f"{max((r['apart'] for r in rows), default=0.0):.0e}",
        }
        for row in self.about.get("speed", []):
            facts[f"speed_{row['operation'].replace(', ', '_').replace(' ', '_')}"] = (
                f"{row['ms']:.1f}"
            )
        return facts | self._graph() | self._gate()

    def _gate(self) -> dict[str, str]:
        """Where queries recur, and how often the gate's own choice is as good as the better of its ends."""
        gate = self.data["questions"]["gate"]
        if not gate["measured"]:
            return {}
        found = {(c.workload, c.variant, c.policy): c.recall for c in loaded(gate["ends"])}
        replayed, asked, close, gaps = [], [], 0, []
        for m in gate["measured"]:
            where = m["workload"], m["variant"]
            evidence, auto, replay = (found[(*where, p)] for p in (ON_LOGS[1], OURS, ON_LOGS[0]))
            (replayed if replay > evidence else asked).append(m["middle"])
            close += auto >= max(evidence, replay) - 0.01
            gaps.append((max(evidence, replay) - auto, " · ".join(where)))
        opens, closes = self.about["gate"]
        return {
            "gate_opens": f"{opens:.2f}",
            "gate_closes": f"{closes:.2f}",
            "gate_places": str(len(gaps)),
            "gate_replay": str(len(replayed)),
            "gate_replay_least": f"{min(replayed):.2f}" if replayed else "–",
            "gate_replay_most": f"{max(replayed):.2f}" if replayed else "–",
            "gate_asked_least": f"{min(asked):.2f}" if asked else "–",
            "gate_asked_most": f"{max(asked):.2f}" if asked else "–",
            "gate_close": str(close),
            "gate_gap": f"{points(max(gaps)[0])} points ({max(gaps)[1]})",
        }

    def graph_places(self) -> list[Place]:
        """Where the graph policy was replayed as well."""
        return [p for p in places_of(self.all_cells) if GRAPH in p.entries]

    def _graph(self) -> dict[str, str]:
        places = self.graph_places()
        if not places:
            return {}
        by = [p.against(GRAPH, REFERENCE) for p in places]
        best = [p.against(GRAPH, p.best().policy) for p in places]
        cost = [c.seconds for c in self.all_cells if c.policy == GRAPH]
        others = {
            (c.workload, c.variant, c.budget): c.seconds
            for c in self.all_cells
            if c.policy == REFERENCE
        }
        slower = [
            c.seconds / others[c.workload, c.variant, c.budget]
            for c in self.all_cells
            if c.policy == GRAPH and others.get((c.workload, c.variant, c.budget))
        ]
        return {
            "graph_places": str(len(places)),
            "graph_above": str(sum(i.above for i in by)),
            "graph_below": str(sum(i.below for i in by)),
            "graph_best": str(sum(i.below for i in best)),
            "graph_slower": f"{_mean(slower):.1f}" if cost else "–",
        }


def _of(ranked: Sequence[Regret], policy: str) -> Regret:
    return next(r for r in ranked if r.policy == policy)


def _share(place: Place) -> float:
    whole = place.everything.recall if place.everything else 0.0
    return place.entries[OURS].recall / whole if whole else 0.0


def _mean(values: Any) -> float:
    found = [v for v in values if not math.isnan(v)]
    return math.fsum(found) / len(found) if found else math.nan


CEILINGS = (EVERYTHING, ORACLE)
