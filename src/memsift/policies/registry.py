"""Policies by name: in files as `{"name", "configuration"}`, on command lines as `coherence:gamma=0.5,window=40`."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from typing import Any

from memsift.errors import InvalidType, InvalidValue
from memsift.policies.adaptive import AdaptivePolicy
from memsift.policies.base import ScoredPolicy
from memsift.policies.baselines import FifoPolicy, RandomPolicy
from memsift.policies.floor import FlooredPolicy
from memsift.policies.gdsf import GdsfPolicy
from memsift.policies.graph import GraphPolicy
from memsift.policies.human import ActrPolicy, EbbinghausPolicy, GenerativeAgentsPolicy
from memsift.policies.plain import LongestPolicy, OldestPolicy, ShortestPolicy
from memsift.policies.reference import CoherencePolicy, LfuPolicy, LruPolicy
from memsift.policies.weighted import WeightedPolicy, plain
from memsift.signals.registry import SIGNALS, build, signal

BASELINES = (FifoPolicy, RandomPolicy, OldestPolicy, LongestPolicy, ShortestPolicy)
FROM_PAPERS = (EbbinghausPolicy, ActrPolicy, GenerativeAgentsPolicy, GdsfPolicy, GraphPolicy)
POLICIES: dict[str, type[ScoredPolicy]] = {
    policy.name: policy
    for policy in (
        AdaptivePolicy,
        LruPolicy,
        LfuPolicy,
        CoherencePolicy,
        *BASELINES,
        *FROM_PAPERS,
        WeightedPolicy,
        FlooredPolicy,
    )
}


def register(policy: type[ScoredPolicy]) -> type[ScoredPolicy]:
    """Make a policy known by its name to `parse` and `from_dict`. Usable as a decorator."""
    if POLICIES.setdefault(policy.name, policy) is not policy:
        raise InvalidValue(
            f"a policy's name must be new; {policy.name!r} is taken by {POLICIES[policy.name]}"
        )
    return policy


def from_dict(data: dict[str, Any]) -> ScoredPolicy:
    """The policy that `to_dict` wrote.

    >>> from_dict({"name": "coherence", "configuration": {"gamma": 0.5}})
    CoherencePolicy(alpha=0.25, beta=0.35, gamma=0.5, window=20)
    """
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise InvalidType(
            f'a policy must be {{"name": text, "configuration": {{...}}}}; got {data!r:.60}'
        )
    name, configuration = data["name"], data.get("configuration", {})
    if name not in POLICIES:
        raise InvalidValue(f"policy must be one of {_known()}; got {name[:40]!r}")
    if POLICIES[name] is WeightedPolicy:
        return WeightedPolicy.from_configuration(configuration)
    if POLICIES[name] is FlooredPolicy and isinstance(configuration, dict):
        inner = configuration.get("policy")
        if isinstance(inner, dict) and inner.get("name") != FlooredPolicy.name:
            return build(FlooredPolicy, name, configuration | {"policy": from_dict(inner)})
    return build(POLICIES[name], name, configuration)


def parse(text: str) -> ScoredPolicy:
    """The policy that a person wrote: a name with parameters, or a sum of weighted signals.

    >>> parse("coherence:gamma=0.5,window=40")
    CoherencePolicy(alpha=0.25, beta=0.35, gamma=0.5, window=40)
    >>> parse("0.5*recency + 0.5*coherence:window=40")
    0.5 * Recency() + 0.5 * Coherence(window=40)
    >>> parse("lru@floor=0.3")
    LruPolicy().with_floor(0.3)
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidType(f"policy must be text, one of {_known()}; got {text!r:.60}")
    text, floored, share = text.partition("@floor")
    if floored:
        return parse(text).with_floor(*_share(share))
    # A plus between signals, not one of an exponent such as 1e+3.
    pieces = re.split(r"(?<!\d[eE])\+", text)
    if len(pieces) > 1 or "*" in text:
        return WeightedPolicy(tuple(_part(piece) for piece in pieces))
    name, configuration = _split(text)
    if name in POLICIES and POLICIES[name] is not WeightedPolicy:
        return build(POLICIES[name], name, _read(configuration, POLICIES[name]))
    if name in SIGNALS:
        return WeightedPolicy(((1.0, signal(name, _read(configuration, SIGNALS[name]))),))
    raise InvalidValue(
        f"policy must be one of {_known()}, or a sum like 0.5*recency+0.5*coherence; got {text[:60]!r}"
    )


def parse_list(text: str) -> list[ScoredPolicy]:
    """Several policies, separated by commas; a comma before `name=value` belongs to the policy before it."""
    if not isinstance(text, str):
        raise InvalidType(f"policies must be text, such as lru,coherence; got {text!r:.60}")
    pieces: list[str] = []
    for piece in text.split(","):
        is_parameter = "=" in piece and ":" not in piece
        if is_parameter and pieces:
            pieces[-1] += f",{piece}"
        elif piece.strip():
            pieces.append(piece)
    if not pieces:
        raise InvalidValue(f"policies must name at least one of {_known()}; got none")
    return [parse(piece) for piece in pieces]


def _part(text: str) -> tuple[float, Any]:
    weight, star, rest = text.partition("*")
    if not star:
        weight, rest = "1", text
    name, configuration = _split(rest)
    try:
        return float(weight), signal(name, _read(configuration, SIGNALS.get(name)))
    except ValueError as error:
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue(
            f"a signal's weight must be a number, as in 0.5*recency; got {weight.strip()!r}"
        ) from None


def _split(text: str) -> tuple[str, dict[str, str]]:
    name, colon, parameters = text.strip().partition(":")
    configuration: dict[str, str] = {}
    for piece in parameters.split(",") if colon else ():
        key, equals, value = piece.partition("=")
        if not equals or not key.strip():
            raise InvalidValue(
                f"parameters must be written name=value; got {piece.strip()[:40]!r} in {text[:60]!r}"
            )
        if key.strip() in configuration:
            raise InvalidValue(
                f"{key.strip()[:40]} must be given once; got it twice in {text[:60]!r}"
            )
        configuration[key.strip()] = value.strip()
    return name.strip().lower(), configuration


def _read(configuration: dict[str, str], factory: type[Any] | None) -> dict[str, Any]:
    """The values of parameters: as JSON, and bare words where the default is one."""
    known = fields(factory) if factory is not None and is_dataclass(factory) else ()
    words = {field.name for field in known if isinstance(field.default, str)}
    values: dict[str, Any] = {}
    for key, text in configuration.items():
        try:
            values[key] = json.loads(text)
        except (ValueError, RecursionError):
            if key not in words:
                raise InvalidValue(
                    f"{key[:40]} must be a number, true or false; got {text[:40]!r}"
                ) from None
            values[key] = text
    return values


def _share(text: str) -> list[float]:
    """What follows `@floor`: nothing, or `=0.3`."""
    try:
        return [float(text.removeprefix("="))] if text.strip() else []
    except ValueError:
        raise InvalidValue(
            f"a floor must be written @floor=share, as in lru@floor=0.2; got {text[:40]!r}"
        ) from None


def _known() -> str:
    hidden = (WeightedPolicy.name, FlooredPolicy.name)
    return ", ".join(name for name in POLICIES if name not in hidden)


def to_text(policy: object) -> str:
    """The short text of a policy, as `parse` reads it: only what differs from its defaults.

    >>> to_text(CoherencePolicy(gamma=0.5))
    'coherence:gamma=0.5'
    """
    if isinstance(policy, FlooredPolicy):
        return f"{to_text(policy.policy)}@floor={plain(policy.share)}"
    if isinstance(policy, WeightedPolicy):
        return "+".join(f"{plain(w)}*{_text(part.name, part)}" for w, part in policy.parts)
    return _text(str(getattr(policy, "name", policy)), policy)


def _text(name: str, configured: object) -> str:
    changed = []
    for field in fields(configured) if is_dataclass(configured) else ():
        value = getattr(configured, field.name)
        if field.compare and value != field.default:
            text = plain(value) if isinstance(value, float) else json.dumps(value)
            changed.append(f"{field.name}={value if isinstance(value, str) else text}")
    return f"{name}:{','.join(changed)}" if changed else name
