"""Namespaces: several memories in one file, each with its own dimension, budget, policy and chain."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memsift import checks
from memsift.budget import Budget
from memsift.errors import (
    CorruptStore,
    DimensionMismatch,
    EmbedderMismatch,
    InvalidType,
    InvalidValue,
    MemsiftError,
)
from memsift.index import KINDS
from memsift.policies import AdaptivePolicy, CompactionPolicy, ScoredPolicy, from_dict
from memsift.storage import rows
from memsift.storage.file import connect, translated

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
FINGERPRINT = re.compile(r"[ -~]{1,200}")
WEEK = 7 * 86_400.0


def checked_name(name: object) -> str:
    """A namespace's name, `[a-z0-9][a-z0-9_.-]{0,63}` and nothing else, newlines at the end included."""
    if not isinstance(name, str):
        raise InvalidType(f"namespace must be text; got {checks.shown(name)}")
    if not NAME.fullmatch(name):
        raise InvalidValue(
            f"namespace must be 1 to 64 of a-z 0-9 _ . - and begin with a letter or digit; got {checks.shown(name)}"
        )
    return name


def checked_embedder(value: object) -> str | None:
    """An embedder's fingerprint: 1 to 200 printable ASCII characters; or None."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidType(f"embedder must be a fingerprint (text); got {checks.shown(value)}")
    if not FINGERPRINT.fullmatch(value):
        raise InvalidValue(
            f"embedder must be 1 to 200 printable ASCII characters; got {checks.shown(value)}"
        )
    return value


@dataclass(frozen=True)
class Config:
    """What a namespace keeps to.

    Parameters
    ----------
    budget : Budget
    policy : CompactionPolicy or None
        None if the file names a policy that this process does not know.
    low_watermark : float
    archive : Budget
        How much may rest in the archive.
    grace_seconds : float
        How long it may rest there.
    index : str
        What answers searches: `exact`, `hnsw` or `auto`.
    embedder : str or None
        Fingerprint of what made the vectors of texts; None if nobody said.
    stranger : dict
        Name and configuration of the policy if this process does not know it.
    """

    budget: Budget
    policy: CompactionPolicy | None
    low_watermark: float = 0.97
    archive: Budget = field(default_factory=Budget)
    grace_seconds: float = WEEK
    index: str = "exact"
    embedder: str | None = None
    stranger: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """Canonical JSON of it, as the file holds it."""
        policy, named = self.policy, self.stranger
        if isinstance(policy, AdaptivePolicy):
            named = policy.plain.to_dict()
        elif isinstance(policy, ScoredPolicy):
            named = policy.to_dict()
        elif policy is not None:
            named = {"name": policy.name, "configuration": None}
        data = {
            "budget": self.budget.limits,
            "policy": named,
            "low_watermark": self.low_watermark,
            "archive": self.archive.limits,
            "grace_seconds": self.grace_seconds,
        }
        if self.index != "exact":  # files from before there was a choice stay as they are
            data["index"] = self.index
        if self.embedder is not None:
            data["embedder"] = self.embedder
        return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def parse(cls, text: str) -> Config:
        data = rows.strict_json(text, "namespace")
        try:
            named = data["policy"]
            try:
                policy = None if named["configuration"] is None else from_dict(named)
            except MemsiftError:
                policy = None
            return cls(
                Budget(**data["budget"]),
                policy,
                checks.fraction(data["low_watermark"], "low_watermark", zero=False),
                Budget(**data["archive"]),
                checks.at_least_zero(data["grace_seconds"], "grace_seconds"),
                checks.one_of(data.get("index", "exact"), "index", KINDS),
                checked_embedder(data.get("embedder")),
                named,
            )
        except (KeyError, TypeError, MemsiftError) as error:
            raise CorruptStore("namespace", f"config must be whole; {error}") from None


@dataclass(frozen=True)
class Settings:
    """What a caller asked for; None means what the file says, or the default."""

    name: str
    dim: int | None = None
    budget: Budget | None = None
    policy: CompactionPolicy | None = None
    low_watermark: float | None = None
    archive: Budget | None = None
    grace_seconds: float | None = None
    index: str | None = None
    embedder: str | None = None

    def over(self, known: Config) -> Config:
        """`known` with what was asked for."""
        names = (
            "budget",
            "policy",
            "low_watermark",
            "archive",
            "grace_seconds",
            "index",
            "embedder",
        )
        asked = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return replace(known, **asked)


@dataclass(frozen=True)
class Namespace:
    """A namespace of the file: its number, identity and configuration."""

    ns: int
    name: str
    dim: int
    store_id: str
    secret: bytes
    config: Config

    @property
    def identity(self) -> tuple[Any, ...]:
        """What never changes of it."""
        return self.ns, self.name, self.dim, self.store_id, self.secret


def find_or_make(db: sqlite3.Connection, settings: Settings) -> Namespace:
    """The namespace that `settings` names as it stands in the file; made as they say if it is new.

    Raises
    ------
    InvalidValue
        It does not exist and no `dim` was given to make it.
    DimensionMismatch
        It exists with another dimension.
    """
    with translated():
        found = _find(db, settings)
        if found is not None:
            return found
        db.execute("BEGIN IMMEDIATE")
        try:
            found = _find(db, settings) or _make(db, settings)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        return found


def names(db: sqlite3.Connection) -> list[tuple[str, int, int]]:
    """Each namespace's name, dimension and number of live entries, by name."""
    with translated():
        found = db.execute("SELECT ns, name, dim FROM namespace ORDER BY name").fetchall()
        count = "SELECT count(*) FROM entry WHERE archived_at IS NULL AND key >= ? AND key < ?"
        bits = rows.ID_BITS
        return [
            (name, dim, db.execute(count, (ns << bits, (ns + 1) << bits)).fetchone()[0])
            for ns, name, dim in found
        ]


def names_in(path: Path) -> list[tuple[str, int, int]]:
    """`names` of a file that exists."""
    db = connect(path, "normal", 5.0, create=False)
    try:
        return names(db)
    finally:
        db.close()


def _find(db: sqlite3.Connection, settings: Settings) -> Namespace | None:
    row = db.execute(
        "SELECT ns, name, dim, store_id, secret, config FROM namespace WHERE name = ?",
        (settings.name,),
    ).fetchone()
    if row is None:
        return None
    ns, name, dim, store_id, secret, config = row
    kinds = (int, str, int, str, bytes, str)
    if (
        not all(type(value) is kind for value, kind in zip(row, kinds, strict=True))
        or not 1 <= dim <= 65_536
        or name != settings.name
    ):
        raise CorruptStore(
            "namespace", "must hold a number, a name, a dimension, an id, a secret and a config"
        )
    known = Config.parse(config)
    if None not in (settings.embedder, known.embedder) and settings.embedder != known.embedder:
        raise EmbedderMismatch(
            f"embedder must be {known.embedder!r}, which filled namespace {name!r}; got {settings.embedder!r} "
            "(reembed makes all vectors anew)"
        )
    if settings.dim is not None and settings.dim != dim:
        raise DimensionMismatch(
            f"dim must be {dim}, as namespace {name!r} of this store was made; got {settings.dim}"
        )
    return Namespace(ns, name, dim, store_id, secret, known)


def _make(db: sqlite3.Connection, settings: Settings) -> Namespace:
    if settings.dim is None:
        raise InvalidValue(
            f"dim must be given to make the namespace {settings.name!r}, which is not in this store"
        )
    budget = settings.budget or Budget()
    config = settings.over(Config(budget, settings.policy or AdaptivePolicy(), archive=budget))
    ns = _next_number(db, settings.name)
    made = Namespace(
        ns, settings.name, settings.dim, secrets.token_hex(16), secrets.token_bytes(32), config
    )
    empty = {"tick": 0, "next_id": 0, "seen": 0, "live": 0, "head": "", "counts": {}}
    state = json.dumps(empty, separators=(",", ":"))
    row = 0, config.text(), state, b""
    db.execute(
        "INSERT INTO namespace VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*made.identity, *row, rows.state_sum(made.identity, row)),
    )
    return made


def _next_number(db: sqlite3.Connection, name: str) -> int:
    """A number for a new namespace, once it is sure that the name is new and not a damaged one's."""
    select = "SELECT ns, name, dim, store_id, secret, generation, config, state, context, sum FROM namespace"
    last = 0
    for row in db.execute(f"{select} NOT INDEXED"):
        last = max(last, row[0])
        if row[1] == name or rows.state_sum(row[:5], row[5:9]) != row[9]:
            raise CorruptStore("namespace", "sum must fit the row; it does not")
    newest = db.execute("SELECT max(key) FROM entry").fetchone()[0]
    if newest is not None and newest >> rows.ID_BITS > last:
        raise CorruptStore("namespace", "entries must belong to one; the file holds others")
    return last + 1
