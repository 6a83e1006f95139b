"""An audit record: what one change did to the memory, as a value with exactly one spelling."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, cast

from memsift.audit import shape
from memsift.audit.commitment import EMPTY
from memsift.audit.fields import InvalidRecord

Kind = Literal["compaction", "erase", "restore", "prune", "key"]


class State(NamedTuple):
    """The memory before or after: its size, and a digest under the store's key (`commitment.sealed`)."""

    entries: int
    bytes: int
    cost: int
    digest: str | None


@dataclass(frozen=True)
class Record:
    """One entry of the audit log. It holds no vector, text, metadata or id.

    Parameters
    ----------
    seq : int, from 1
        Its place in the log.
    prev : str
        Hash of the record before it, in hex; of the first, `chain.genesis(store_id)`.
    time : int
        Unix time in nanoseconds, UTC; for the reader, not for the order.
    kind : "compaction", "erase", "restore", "prune" or "key"
    policy : {"name", "configuration"} or None
        Who chose; configurations are at most 16 levels deep.
    budget : dict of str to int
        The limits that the survivors were to fit into.
    before, after : State
    context_digest : str or None
        Of the context window (`commitment.context_digest`); None where no query had a say.
    evicted_count : int
    evicted_commitment : str
        `commitment.evicted_commitment` of those ids.
    spared : int
        Victims of the plan that stayed.
    forced : bool
        More than half of the memory had to go in one step.
    note : flat dict of numbers, booleans, None and lowercase hex
        Facts of one kind. prune: `upto_seq` and `upto_hash` of the last record that was dropped. key: see `rotation`.

    Raises
    ------
    InvalidRecord
        A field has a wrong type or form.
    """

    seq: int
    prev: str
    time: int
    kind: Kind
    policy: dict[str, Any] | None
    budget: dict[str, int]
    before: State
    after: State
    context_digest: str | None = None
    evicted_count: int = 0
    evicted_commitment: str = EMPTY
    spared: int = 0
    forced: bool = False
    note: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("before", "after"):
            if not isinstance(getattr(self, name), State):
                raise InvalidRecord(f"{name} must be a State(entries, bytes, cost, digest)")
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values |= {"before": self.before._asdict(), "after": self.after._asdict()}
        body = _spelt(values)
        shape.read(body)
        # Kept as written: a caller who changes a dict of his afterwards does not change the record.
        object.__setattr__(self, "_body", body)
        object.__setattr__(self, "_hash", hash_of(body))
        plain = json.loads(body)
        for name in ("policy", "budget", "note"):
            object.__setattr__(self, name, plain[name])

    @classmethod
    def parse(cls, body: bytes) -> Record:
        """The record that these bytes spell.

        Raises
        ------
        InvalidRecord
            They are not exactly a canonical body: unknown, missing or repeated fields, wrong types, NaN, spaces.
        """
        shape.read(body)
        values = json.loads(body)
        states = {name: State(**values[name]) for name in ("before", "after")}
        record = cls(**{**values, **states})
        if record.body() != body:  # pragma: no cover - `read` has compared the parts
            raise InvalidRecord("a record must be canonical JSON")
        return record

    def body(self) -> bytes:
        """Canonical JSON: sorted keys, UTF-8, no spaces."""
        return cast(bytes, self.__dict__["_body"])

    @property
    def hash(self) -> str:
        """SHA-256 of a zero byte and the body, in hex: the next record's `prev`."""
        return cast(str, self.__dict__["_hash"])

    def __hash__(self) -> int:
        return hash(self.body())


def hash_of(body: bytes) -> str:
    """The hash of a record by its body."""
    return hashlib.sha256(b"\x00" + body).hexdigest()


def _spelt(values: dict[str, Any]) -> bytes:
    try:
        return shape.dumps(values)
    except (ValueError, TypeError, RecursionError):
        pass
    for name, value in values.items():
        try:
            shape.dumps(value)
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidRecord(f"{name} must be strict JSON; {error}") from None
    raise InvalidRecord("a record must be strict JSON")  # pragma: no cover - one field is at fault
