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
from memsift.errors import CorruptStore, DimensionMismatch, InvalidType, InvalidValue, MemsiftError
from memsift.policies import CoherencePolicy, CompactionPolicy, ScoredPolicy, from_dict
from memsift.storage import rows
from memsift.storage.file import connect, translated

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
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
    """

    budget: Budget
    policy: CompactionPolicy | None
    low_watermark: float = 0.97
    archive: Budget = field(default_factory=Budget)
    grace_seconds: float = WEEK

    def text(self) -> str:
        """Canonical JSON of it, as the file holds it."""
        policy = self.policy
        if isinstance(policy, ScoredPolicy):
            named = policy.to_dict()
        else:
            named = {"name": getattr(policy, "name", ""), "configuration": None}
        data = {
            "budget": self.budget.limits,
            "policy": named,
            "low_watermark": self.low_watermark,
            "archive": self.archive.limits,
            "grace_seconds": self.grace_seconds,
        }
        return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def parse(cls, text: str) -> Config:
        data = rows.strict_json(text, "namespace")
        try:
            known = data["policy"]["configuration"] is not None
            try:
                policy = from_dict(data["policy"]) if known else None
            except MemsiftError:
                policy = None
            return cls(
                Budget(**data["budget"]),
                policy,
                checks.fraction(data["low_watermark"], "low_watermark", zero=False),
                Budget(**data["archive"]),
                checks.at_least_zero(data["grace_seconds"], "grace_seconds"),
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

    def over(self, known: Config) -> Config:
        """`known` with what was asked for."""
        names = ("budget", "policy", "low_watermark", "archive", "grace_seconds")
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


def find_or_make(db: sqlite3.Connection, settings: Settings) -> Namespace:
    """The namespace that `settings` names, made if it is new, changed to what was asked for.

    Raises
    ------
    InvalidValue
        It does not exist and no `dim` was given to make it.
    DimensionMismatch
        It exists with another dimension.
    """
    with translated():
        found = _find(db, settings)
        if found is not None and settings.over(found.config).text() == found.config.text():
            return replace(found, config=settings.over(found.config))
        db.execute("BEGIN IMMEDIATE")
        try:
            found = _find(db, settings) or _make(db, settings)
            config = settings.over(found.config)
            _configure(db, found, config)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        return replace(found, config=config)


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
    ):
        raise CorruptStore(
            "namespace", "must hold a number, a name, a dimension, an id, a secret and a config"
        )
    if settings.dim is not None and settings.dim != dim:
        raise DimensionMismatch(
            f"dim must be {dim}, as namespace {name!r} of this store was made; got {settings.dim}"
        )
    return Namespace(ns, name, dim, store_id, secret, Config.parse(config))


def _make(db: sqlite3.Connection, settings: Settings) -> Namespace:
    if settings.dim is None:
        raise InvalidValue(
            f"dim must be given to make the namespace {settings.name!r}, which is not in this store"
        )
    budget = settings.budget or Budget()
    config = settings.over(Config(budget, settings.policy or CoherencePolicy(), archive=budget))
    ns = 1 + db.execute("SELECT coalesce(max(ns), 0) FROM namespace").fetchone()[0]
    made = Namespace(
        ns, settings.name, settings.dim, secrets.token_hex(16), secrets.token_bytes(32), config
    )
    state = json.dumps({"tick": 0, "next_id": 0, "seen": 0, "counts": {}}, separators=(",", ":"))
    values: tuple[Any, ...] = (
        ns,
        made.name,
        made.dim,
        made.store_id,
        made.secret,
        0,
        config.text(),
        state,
        b"",
    )
    db.execute(
        "INSERT INTO namespace VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*values, rows.state_sum(*values[5:])),
    )
    return made


def _configure(db: sqlite3.Connection, found: Namespace, config: Config) -> None:
    """Write another configuration as a change of its own, so that other processes see it."""
    row = db.execute(
        "SELECT generation, state, context FROM namespace WHERE ns = ?", (found.ns,)
    ).fetchone()
    generation, state, context = row[0] + 1, row[1], row[2]
    total = rows.state_sum(generation, config.text(), state, context)
    db.execute(
        "UPDATE namespace SET generation = ?, config = ?, sum = ? WHERE ns = ?",
        (generation, config.text(), total, found.ns),
    )
    db.execute("INSERT INTO change VALUES (?, ?, ?)", (found.ns, generation, b""))
