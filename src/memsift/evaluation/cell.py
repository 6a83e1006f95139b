"""One cell of a results table: one policy at one budget on one trace."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple


class Parts(NamedTuple):
    """A cell's queries in parts, for intervals: whole streams, or blocks of 50 queries of a stream.

    Parameters
    ----------
    stream : tuple of int
        The number of the stream that each part belongs to.
    scored, compared : tuple of int
        Queries with a label of need, and of fidelity, in each part.
    recall, fidelity : tuple of float
        Their means in each part, to 5 decimals; 0 where there is no such query.
    """

    stream: tuple[int, ...] = ()
    scored: tuple[int, ...] = ()
    recall: tuple[float, ...] = ()
    compared: tuple[int, ...] = ()
    fidelity: tuple[float, ...] = ()


@dataclass(frozen=True)
class Cell:
    """What one replay measured. Shares are means of stream means, in [0, 1].

    Parameters
    ----------
    workload, variant : str
        Which trace, and how it was driven (`end`, `end-traffic`, `interleaved`, `used`, `log`).
    policy : str
        The policy's label; `keep everything` and `oracle` are the ceilings, `random` the floor.
    budget : float in (0, 1]
        The cap in entries as a share of the stream's memories.
    watermark : float in (0, 1]
        A full store is compacted to this share of its cap.
    seed : int
        The seed of whatever was left to chance.
    need : "evidence" or "coverage"
        What `recall` means here (see `Trace`).
    recall : float
        recall@10 by need; NaN when no query carries a label.
    kept : float
        Share of the needed (groups of) memories that were still stored when asked for.
    fidelity : float
        Share of the exact ten nearest earlier memories among the hits, counted by meaning; NaN without labels.
    occupancy : float
        Mean number of stored entries when a query was scored, as a share of the cap.
    queries, evicted : int
        Scored queries; entries evicted over the whole stream.
    seconds : float
        CPU time of the replay; of the one that it shares, where two variants cannot differ.
    parts : Parts
        The same figures in parts, for intervals; empty where they were not kept.
    """

    workload: str
    variant: str
    policy: str
    budget: float
    watermark: float
    seed: int
    need: str
    recall: float
    kept: float
    fidelity: float
    occupancy: float
    queries: int
    evicted: int
    seconds: float
    parts: Parts = field(default=Parts(), repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON-ready values, without the parts; one that does not exist (NaN) becomes None."""
        named = ((f.name, getattr(self, f.name)) for f in fields(self) if f.name != "parts")
        return {k: None if isinstance(v, float) and v != v else v for k, v in named}
