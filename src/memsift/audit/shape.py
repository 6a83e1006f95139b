"""The canonical form of a record's bytes: one expression that reads fast and admits nothing else.

A body is JSON with sorted keys (by code point), UTF-8, no spaces, no NaN, numbers as Python writes them.
Every field has one spelling, given below; so equal records have equal bytes, and a body in another style is no body.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

from memsift import checks
from memsift.audit.commitment import EMPTY
from memsift.audit.fields import InvalidRecord, is_number

KINDS = ("compaction", "erase", "restore", "prune", "key")
BODY_BYTES = 16_384
POLICY_DEPTH = 16

_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode

_HEX = '"[0-9a-f]{64}"'
_NUMBER = "(?:0|[1-9][0-9]{0,18})"
_STATE = rf'\{{"bytes":{_NUMBER},"cost":{_NUMBER},"digest":(?:{_HEX}|null),"entries":{_NUMBER}\}}'
_STATE_WORDS = "{entries, bytes, cost: numbers of at most 19 digits, digest: a hash or None}"

# Of each field: how it is spelt, and in words. Objects of free content are looked at again below.
FIELDS = {
    "after": (_STATE, _STATE_WORDS),
    "before": (_STATE, _STATE_WORDS),
    "budget": (r"\{[^{}]*\}", "limits of entries, bytes and/or cost, numbers of at most 19 digits"),
    "context_digest": (f"(?:{_HEX}|null)", "64 lowercase hex characters or None"),
    "evicted_commitment": (_HEX, "64 lowercase hex characters"),
    "evicted_count": (_NUMBER, "a number from 0 to 19 digits"),
    "forced": ("(?:true|false)", "True or False"),
    "kind": (f'"(?:{"|".join(KINDS)})"', "one of " + ", ".join(KINDS)),
    "note": (r"\{[^{}]*\}", "a flat dict of numbers, booleans, None and lowercase hex"),
    "policy": (r"(?:null|\{.*\})", "{name, configuration} or None"),
    "prev": (_HEX, "64 lowercase hex characters"),
    "seq": ("[1-9][0-9]{0,18}", "a number from 1 to 19 digits"),
    "spared": (_NUMBER, "a number from 0 to 19 digits"),
    "time": (_NUMBER, "whole nanoseconds of at most 19 digits"),
}
# What a note must tell, of the kinds that need one.
NEEDED = {
    "prune": {"upto_seq": _NUMBER, "upto_hash": _HEX},
    "key": {"key_id": '"[0-9a-f]{16}"'},
}
_BODY = re.compile(
    (r"\{" + ",".join(f'"{n}":(?P<{n}>{p})' for n, (p, _) in FIELDS.items()) + r"\}").encode()
).fullmatch
_NOTE_KEY = re.compile("[a-z][a-z0-9_]{0,31}").fullmatch
_NOTE_HEX = re.compile("[0-9a-f]{1,128}").fullmatch
_EMPTY = f'"{EMPTY}"'.encode()
_EVICTED = ("evicted_count", "evicted_commitment")
_CHAINED = ("seq", "prev", "kind", "note")


class Shape(NamedTuple):
    """What the chain needs of a body; `note` is still JSON."""

    seq: int
    prev: str
    kind: str
    note: bytes


def dumps(value: Any) -> bytes:
    """`value` as canonical JSON."""
    return _encode(value).encode()


def read(body: bytes) -> Shape:
    """The parts of a canonical body that bind it into its chain.

    Raises
    ------
    InvalidRecord
        The bytes are not exactly a canonical body.
    """
    found = _BODY(body) if len(body) <= BODY_BYTES else None
    if found is None:
        raise InvalidRecord(_fault(body))
    _check_policy(found["policy"])
    _check_budget(found["budget"])
    count, commitment = found.group(*_EVICTED)
    if (count == b"0") != (commitment == _EMPTY):
        raise InvalidRecord(
            "evicted_commitment must be that of nothing exactly if evicted_count is 0"
        )
    seq, prev, kind, note = found.group(*_CHAINED)
    shape = Shape(int(seq), prev[1:-1].decode(), kind[1:-1].decode(), note)
    _check_note(shape.kind, note)
    if shape.kind == "prune" and json.loads(note)["upto_seq"] >= shape.seq:
        raise InvalidRecord("note[upto_seq] must be less than the prune record's own seq")
    return shape


# Policies and budgets are the same in most records of a log, so what was looked at once is remembered.
@lru_cache(maxsize=256)
def _check_policy(raw: bytes) -> None:
    policy = _canonical(raw, "policy")
    if policy is None:
        return
    name = policy.get("name") if policy.keys() == {"name", "configuration"} else None
    if not isinstance(name, str) or not 1 <= len(name) <= 128:
        raise InvalidRecord("policy must be {name: 1 to 128 characters, configuration: a dict}")
    if not isinstance(policy["configuration"], dict) or not _within(policy, POLICY_DEPTH):
        raise InvalidRecord(
            f"policy[configuration] must be a dict of at most {POLICY_DEPTH} levels"
        )


@lru_cache(maxsize=256)
def _check_budget(raw: bytes) -> None:
    for unit, limit in _canonical(raw, "budget").items():
        if unit not in ("entries", "bytes", "cost") or not is_number(limit):
            raise InvalidRecord(f"budget must be {FIELDS['budget'][1]}; got {unit!r:.40}")


@lru_cache(maxsize=256)
def _check_note(kind: str, raw: bytes) -> None:
    note = _canonical(raw, "note")
    for key, value in note.items():
        plain = value is None or type(value) is bool or is_number(value)
        if not _NOTE_KEY(key) or not (plain or (isinstance(value, str) and _NOTE_HEX(value))):
            raise InvalidRecord(f"note must be {FIELDS['note'][1]}; got {key!r:.40}")
    for key, form in NEEDED.get(kind, {}).items():
        if key not in note or not re.fullmatch(form, dumps(note[key]).decode()):
            raise InvalidRecord(f"note of a {kind} record must tell {' and '.join(NEEDED[kind])}")


def _canonical(raw: bytes, where: str) -> Any:
    # What survives the way there and back is canonical: no repeated or unsorted keys, no NaN, no 1.50, no \u0041.
    try:
        value = json.loads(raw.decode())
        same = dumps(value) == raw
    except (ValueError, RecursionError):
        same = False
    if not same:
        raise InvalidRecord(f"{where} must be canonical JSON")
    return value


def _within(value: object, depth: int) -> bool:
    if not isinstance(value, (dict, list)):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_within(v, depth - 1) for v in inner)


def _fault(body: bytes) -> str:
    """Why a body is none, in words."""
    if len(body) > BODY_BYTES:
        return f"a record must be at most {BODY_BYTES:,} bytes; got {len(body):,}"
    try:
        record = json.loads(body.decode())
    except (ValueError, RecursionError):
        return "a record must be canonical JSON in UTF-8"
    if not isinstance(record, dict):
        return f"a record must be a JSON object; got a {type(record).__name__}"
    for name in record:
        if name not in FIELDS:
            return f"a record must have no fields beyond its own; got {name!r:.40}"
    for name, (pattern, words) in FIELDS.items():
        if name not in record:
            return f"a record must have all its fields; {name} is missing"
        try:
            spelt = dumps(record[name])
        except (ValueError, RecursionError):
            spelt = b""
        if not re.fullmatch(pattern.encode(), spelt):
            return f"{name} must be {words}; got {checks.shown(record[name])}"
    return "a record must be canonical JSON: sorted keys, no spaces, no repeated keys"
