"""A batch of operations at the door: everything that can be refused is, before anything is embedded or done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from langgraph.store.base import (
    GetOp,
    IndexConfig,
    ListNamespacesOp,
    Op,
    PutOp,
    SearchOp,
    validate_op_namespace,
)

from memsift import checks
from memsift.adapters.keys import Label, Name, checked_key
from memsift.adapters.langgraph import filters, values, vectors
from memsift.errors import InvalidType


@dataclass(frozen=True)
class Put:
    """One item to be kept, or to be deleted if it has no text.

    Parameters
    ----------
    text : str or None
        Its value as JSON.
    said : list of str
        What is embedded of it.
    ttl : float or None
        Minutes that it lives after its last use.
    """

    name: Name
    text: str | None
    said: list[str]
    ttl: float | None


@dataclass
class Errand:
    """What a batch asks for: reads by their place in it, and the last put of each name."""

    count: int = 0
    reads: list[tuple[int, Op]] = field(default_factory=list)
    puts: dict[Name, Put] = field(default_factory=dict)

    def said(self) -> list[str]:
        """Every text of the puts that is to be embedded, once."""
        return list(dict.fromkeys(text for put in self.puts.values() for text in put.said))

    def asked(self) -> list[str]:
        """Every query, once."""
        queries = [op.query for _, op in self.reads if isinstance(op, SearchOp) and op.query]
        return list(dict.fromkeys(queries))


def errand_of(ops: Iterable[Op], index: IndexConfig | None) -> Errand:
    """A batch, checked.

    Raises
    ------
    InvalidNamespaceError, InvalidType, InvalidValue, InvalidFilter
        Nothing was done.
    """
    errand = Errand()
    for place, op in enumerate(ops):
        errand.count = place + 1
        validate_op_namespace(op)
        if isinstance(op, PutOp):
            put = _put(op, index)
            errand.puts[put.name] = put
            continue
        if isinstance(op, GetOp):
            checked_key(op.key, "key")
        elif isinstance(op, SearchOp):
            checks.integer(op.limit, "limit", 0)
            checks.integer(op.offset, "offset", 0)
            filters.check(op.filter or {})
        elif not isinstance(op, ListNamespacesOp):
            raise InvalidType(
                f"ops must be GetOp, PutOp, SearchOp or ListNamespacesOp; got {type(op).__name__}"
            )
        errand.reads.append((place, op))
    return errand


def _put(op: PutOp, index: IndexConfig | None) -> Put:
    name = Name(tuple(op.namespace), checked_key(op.key, "key"))
    Label(name).note()  # not too long
    ttl = None if op.ttl is None else checks.at_least_zero(op.ttl, "ttl")
    text = None if op.value is None else values.to_text(op.value)
    return Put(name, text, vectors.texts(index, op), ttl)
