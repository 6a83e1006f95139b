"""The numbers of a policy by name: what a fit may move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from memsift.errors import InvalidValue
from memsift.policies import ScoredPolicy, WeightedPolicy, policy_name


def numbers_of(policy: ScoredPolicy) -> dict[str, float]:
    """Every number by which a policy is told, by name.

    Fields by their names, those of a policy within it too; of an expression the weights by the names of their signals
    (`recency`, a second one `recency#2`), and the signals' own numbers (`coherence.window`).

    >>> from memsift.policies import CoherencePolicy, parse
    >>> numbers_of(CoherencePolicy())
    {'alpha': 0.25, 'beta': 0.35, 'gamma': 0.4, 'window': 20}
    >>> numbers_of(parse("0.5*recency+1*coherence"))
    {'recency': 0.5, 'coherence': 1.0, 'coherence.window': 20}
    """
    if isinstance(policy, WeightedPolicy):
        found: dict[str, float] = {}
        for name, (weight, signal) in zip(_names(policy), policy.parts, strict=True):
            found[name] = weight
            found |= {f"{name}.{field}": value for field, value in _fields(signal).items()}
        return found
    inner = _inner(policy)
    return (numbers_of(inner[1]) if inner else {}) | _fields(policy)


def with_number(policy: ScoredPolicy, name: str, value: float) -> ScoredPolicy:
    """The policy with another number, rounded to four digits, or to a whole number where it was one."""
    short = round(value) if isinstance(numbers_of(policy)[name], int) else float(f"{value:.4g}")
    if isinstance(policy, WeightedPolicy):
        parts = []
        for part, (weight, signal) in zip(_names(policy), policy.parts, strict=True):
            own = name.removeprefix(f"{part}.")
            changed: Any = signal
            if own != name:
                changed = replace(changed, **{own: short})
            parts.append((float(short) if part == name else weight, changed))
        return WeightedPolicy(tuple(parts))
    inner = _inner(policy)
    if inner and name not in _fields(policy):
        return replace(policy, **{inner[0]: with_number(inner[1], name, value)})
    return replace(policy, **{name: short})


def chosen(policy: ScoredPolicy, names: Sequence[str] | None) -> list[str]:
    """The numbers to fit: those named, or all that are no whole numbers and not a signal's own.

    Raises
    ------
    InvalidValue
        The policy has no such number, or none at all.
    """
    known = numbers_of(policy)
    weights = [n for n, value in known.items() if isinstance(value, float) and "." not in n]
    if not known or (names is None and not weights):
        raise InvalidValue(
            f"policy must have numbers to fit, as coherence has; {policy_name(policy)[:60]} has none"
        )
    if names is None:
        return weights
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise InvalidValue(
            f"parameters must be among {', '.join(known)}; got {', '.join(unknown)[:60] or 'none'}"
        )
    return list(dict.fromkeys(names))


def _names(policy: WeightedPolicy) -> list[str]:
    seen: dict[str, int] = {}
    names = []
    for _, signal in policy.parts:
        seen[signal.name] = seen.get(signal.name, 0) + 1
        count = seen[signal.name]
        names.append(signal.name if count == 1 else f"{signal.name}#{count}")
    return names


def _fields(thing: object) -> dict[str, float]:
    if not is_dataclass(thing):
        return {}
    # What does not count in a comparison is no setting.
    named = {f.name: getattr(thing, f.name) for f in fields(thing) if f.init and f.compare}
    return {
        name: value
        for name, value in named.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def _inner(policy: ScoredPolicy) -> tuple[str, ScoredPolicy] | None:
    """The policy within a policy, and the name of the field that holds it."""
    for field in fields(policy):
        value = getattr(policy, field.name)
        if isinstance(value, ScoredPolicy):
            return field.name, value
    return None
