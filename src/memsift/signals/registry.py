"""Signals by name, for files and command lines."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from memsift.checks import shown
from memsift.errors import InvalidType, InvalidValue
from memsift.signals.access import Attention, Frequency, Heat, Recency, StackDistance
from memsift.signals.arrival import Adjacency, Distance, Novelty
from memsift.signals.base import Signal
from memsift.signals.caller import Importance, Size, Use
from memsift.signals.centrality import Centrality
from memsift.signals.coherence import Coherence, Density
from memsift.signals.distinct import Distinctiveness
from memsift.signals.human import BaseLevel, Retention

T = TypeVar("T")

BY_ACCESS = (Recency, StackDistance, Frequency, Heat, Attention, Retention, BaseLevel)
BY_CONTENT = (Coherence, Density, Novelty, Distance, Adjacency, Distinctiveness, Centrality)
BY_CALLER = (Use, Size, Importance)
SIGNALS: dict[str, type[Signal]] = {s.name: s for s in (*BY_ACCESS, *BY_CONTENT, *BY_CALLER)}


def signal_from_dict(data: dict[str, Any]) -> Signal:
    """The signal that `{"name", "configuration"}` describes."""
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise InvalidType(
            f'a signal must be {{"name": text, "configuration": {{...}}}}; got {data!r:.60}'
        )
    return signal(data["name"], data.get("configuration", {}))


def signal(name: str, configuration: dict[str, Any]) -> Signal:
    """The signal of that name.

    Raises
    ------
    InvalidValue
        An unknown name or parameter, with those that exist.
    """
    if name not in SIGNALS:
        raise InvalidValue(f"signal must be one of {', '.join(sorted(SIGNALS))}; got {name[:40]!r}")
    return build(SIGNALS[name], name, configuration)


def build(factory: type[T], name: str, configuration: dict[str, Any]) -> T:
    """`factory(**configuration)`, with an error that names the parameters that exist."""
    if not isinstance(configuration, dict) or not all(
        isinstance(key, str) for key in configuration
    ):
        raise InvalidType(
            f"the configuration of {name} must be a dict of parameters; got {shown(configuration)}"
        )
    known = [field.name for field in fields(factory)]  # type: ignore[arg-type]
    unknown = sorted(configuration.keys() - set(known))
    if unknown:
        raise InvalidValue(
            f"{name} takes the parameters {', '.join(known) or 'none at all'}; got {', '.join(unknown)}"
        )
    return factory(**configuration)
