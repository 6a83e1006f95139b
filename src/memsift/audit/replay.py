"""Whether a record tells the truth about a decision whose inputs are still held: run it again and compare.

A chain cannot tell a false record that was written at the time. Whoever holds the memory as it was before (a backup,
an archive) can plan again and see.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from memsift.audit import commitment, shape
from memsift.audit.record import Record

if TYPE_CHECKING:
    from memsift.plan import Plan


def policy_fields(policy: Any) -> dict[str, Any]:
    """A policy as a record shows it: its `to_dict()`, or its name alone for a stranger's without one."""
    if hasattr(policy, "to_dict"):
        fields: dict[str, Any] = policy.to_dict()
        return fields
    return {"name": policy.name, "configuration": {}}


def confirms(record: Record, key: bytes, plan: Plan, spared: Iterable[int] = ()) -> bool:
    """Whether this plan, but for the ids that were spared, is the decision that the record tells of."""
    return not differences(record, key, plan, spared)


def differences(record: Record, key: bytes, plan: Plan, spared: Iterable[int] = ()) -> list[str]:
    """The record's fields that this plan does not bear out; empty if it confirms them all.

    Parameters
    ----------
    record : Record
        Of a compaction; its digests are `commitment.sealed` and `commitment.context_digest` under `key`.
    key : bytes
        The store's key.
    plan : Plan
        Made again, from the memory as it was before, by the same policy for the same target.
    spared : iterable of int
        The plan's victims that stayed. A record has only their number; without them an eviction in part cannot
        be confirmed. Which bytes and cost are left then is not checked either, since the plan does not tell.

    Notes
    -----
    `after.digest` is not compared: a plan does not say what the memory looked like afterwards. Memory that held
    other vectors under the same columns shows in the victims, not in `before.digest`, which covers the columns.

    `measured` among the fields: the decision was made by what a large store remembered of its entries' neighbours, of
    which the record has a digest, and this plan was made by something else. Then the decision cannot be confirmed, and
    other victims are no lie.
    """
    stayed = {int(i) for i in spared}
    victims = [i for i in plan.victims.tolist() if i not in stayed]
    left_out = len(plan.victims) - len(victims)
    told, told_measured = _apart(record.policy)
    planned, planned_measured = _apart(policy_fields(plan.policy))
    found: dict[str, tuple[Any, Any]] = {
        "kind": (record.kind, "compaction"),
        "policy": (_spelt(told), _spelt(planned)),
        "measured": (told_measured, planned_measured),
        "budget": (record.budget, plan.target.limits),
        "before": (record.before[:3], tuple(plan.before)),
        "before.digest": (record.before.digest, commitment.sealed(key, plan.digest)),
        "context_digest": (
            record.context_digest,
            commitment.context_digest(key, plan.view.context),
        ),
        "evicted_count": (record.evicted_count, len(victims)),
        "evicted_commitment": (
            record.evicted_commitment,
            commitment.evicted_commitment(key, victims),
        ),
        "spared": (record.spared, len(stayed)),
        "after": (record.after.entries, record.before.entries - len(victims)),
    }
    if not stayed:
        found["after"] = (record.after[:3], tuple(plan.after))
        found["forced"] = (record.forced, plan.forced)
    differing = [name for name, (said, made) in found.items() if said != made]
    return differing if left_out == len(stayed) else [*differing, "spared ids"]


def _apart(policy: Any) -> tuple[Any, list[str]]:
    """A policy's fields without the digests of what it judged by, and those digests, in order."""
    if isinstance(policy, list):
        parts = [_apart(part) for part in policy]
        return [fields for fields, _ in parts], [text for _, found in parts for text in found]
    if not isinstance(policy, dict):
        return policy, []
    fields, digests = {}, []
    for name, value in policy.items():
        if name == "measured" and isinstance(value, str):
            digests.append(value)
            continue
        fields[name], found = _apart(value)
        digests += found
    return fields, digests


def _spelt(policy: dict[str, Any] | None) -> bytes:
    return shape.dumps(policy)
