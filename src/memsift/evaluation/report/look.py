"""How policies look: a colour and a marker each, the same in every panel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from memsift.evaluation.report.panels import KEEP_EVERYTHING, RANDOM, Panel

INK, QUIET, RULE, SHADE = "#1d2329", "#56606a", "#e1e5e8", "#f0f2f4"

# Okabe and Ito's colours without their yellow and black, which fail on white, and two of Paul
# Tol's: told apart in the common kinds of colour blindness. There is one marker more than there are
# colours, so a pair returns only after 72 policies.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#332288")
_MARKERS = ("o", "s", "^", "D", "v", "P", "p", "h", "<")


@dataclass(frozen=True)
class Look:
    """One policy's line: colour, marker and dashes in matplotlib's words."""

    colour: str
    marker: str
    dashes: str | tuple[int, tuple[float, ...]] = "-"
    hollow: bool = False

    def marking(self, size: float) -> dict[str, Any]:
        """The marker in matplotlib's words; a white rim keeps overlapping markers apart."""
        return {
            "marker": self.marker,
            "markersize": size * (1.5 if self.marker == "*" else 1.0),
            "markerfacecolor": "white" if self.hollow else self.colour,
            "markeredgecolor": self.colour if self.hollow else "white",
            "markeredgewidth": 1.3 if self.hollow else 0.7,
        }


_KEEP = Look(INK, "None", (0, (4.0, 2.5)))
_ORACLE = Look(INK, "*")
_RANDOM = Look("#76808a", "o", hollow=True)


def looks(panels: Iterable[Panel]) -> dict[str, Look]:
    """A look for each policy, in reading order: greys for floor and ceilings, else a colour."""
    chosen: dict[str, Look] = {}
    rank = 0
    for row in (row for panel in panels for row in panel.rows):
        if row.policy in chosen:
            continue
        if row.role == "policy":
            colour, marker = _COLOURS[rank % len(_COLOURS)], _MARKERS[rank % len(_MARKERS)]
            chosen[row.policy] = Look(colour, marker)
            rank += 1
        else:
            chosen[row.policy] = {KEEP_EVERYTHING: _KEEP, RANDOM: _RANDOM}.get(row.policy, _ORACLE)
    return chosen
