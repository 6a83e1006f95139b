"""Which namespaces a listing shows."""

from __future__ import annotations

from collections.abc import Iterable

from langgraph.store.base import ListNamespacesOp, MatchCondition

from memsift import checks
from memsift.adapters.keys import Space
from memsift.errors import InvalidValue


def listed(spaces: Iterable[Space], op: ListNamespacesOp) -> list[Space]:
    """The namespaces that an operation asks for, sorted, cut to its depth."""
    limit, offset = checks.integer(op.limit, "limit", 0), checks.integer(op.offset, "offset", 0)
    conditions = op.match_conditions or ()
    found = {space for space in spaces if all(_meets(space, one) for one in conditions)}
    if op.max_depth is not None:
        depth = checks.integer(op.max_depth, "max_depth", 1)
        found = {space[:depth] for space in found}
    return sorted(found)[offset : offset + limit]


def _meets(space: Space, condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise InvalidValue(
            f"match_type must be prefix or suffix; got {checks.shown(condition.match_type)}"
        )
    if len(space) < len(path):
        return False
    part = (
        space[: len(path)] if condition.match_type == "prefix" else space[len(space) - len(path) :]
    )
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
