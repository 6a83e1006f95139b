"""A plan that is being carried out, in a file: JSON lines, written whole or not at all, never changed."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memsift.audit.replay import policy_fields
from memsift.backends.base import Share, SourcePlan
from memsift.backends.ids import from_json, to_json
from memsift.errors import CorruptStore, InvalidValue, MemsiftError
from memsift.policies import from_dict
from memsift.storage.file import refusal

FORM = 1
FIELDS = {"memsift_sift", "id", "nonce", "source", "policy", "keep", "shares", "about"}


@dataclass(frozen=True)
class Named:
    """A stranger's policy, as far as a file can tell: its name and configuration."""

    name: str
    configuration: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "configuration": self.configuration}

    def select_survivors(self, *_: Any) -> Any:
        raise InvalidValue(f"policy {self.name} is only known by its name here")


def write(path: Path, plan: SourcePlan, about: dict[str, Any]) -> None:
    """Write a plan (0600) with what else its execution must know, JSON-ready.

    Raises
    ------
    InvalidValue
        There is one already, or no folder for it.
    DiskTrouble
    """
    head = {
        "memsift_sift": FORM,
        "id": plan.id,
        "nonce": plan.nonce,
        "source": plan.source,
        "policy": policy_fields(plan.policy),
        "keep": plan.keep,
        "shares": [list(share) for share in plan.shares],
        "about": about,
    }
    part = path.with_name(f"{path.name}.part")
    try:
        if path.exists():
            raise InvalidValue(f"{path.name} must not exist yet: a sift was begun and not finished")
        with suppress(FileNotFoundError):
            part.unlink()  # what a kill left while it was written
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(part, flags, 0o600), "w", encoding="utf-8") as stream:
            stream.write(json.dumps(head) + "\n")
            for id_, mark, tenant in zip(plan.ids, plan.marks, plan.tenants, strict=True):
                stream.write(json.dumps([to_json(id_), mark, tenant]) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
        sync_folder(path)
    except OSError as error:
        raise refusal("the plan must have a new file in a folder that exists", error) from error


def read(path: Path) -> tuple[SourcePlan, dict[str, Any]]:
    """The plan of a file, and what else it says.

    Raises
    ------
    CorruptStore
        Its lines are not those that were written.
    """
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags), encoding="utf-8") as stream:
            head = json.loads(stream.readline())
            lines = [json.loads(line) for line in stream]
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise CorruptStore("plan", f"must be JSON lines that can be read; {error}") from None
    if not isinstance(head, dict) or head.keys() != FIELDS or head["memsift_sift"] != FORM:
        raise CorruptStore("plan", f"must begin with the head of a sift of form {FORM}")
    try:
        plan = SourcePlan(
            head["source"],
            _policy(head["policy"]),
            head["keep"],
            [Share(*share) for share in head["shares"]],
            [from_json(id_) for id_, _, _ in lines],
            [mark for _, mark, _ in lines],
            [tenant for _, _, tenant in lines],
            np.full(len(lines), np.nan),
            nonce=head["nonce"],
        )
        found = plan.id
    except (MemsiftError, TypeError, ValueError, KeyError) as error:
        raise CorruptStore("plan", f"must be that of a sift; {error}") from None
    if found != head["id"]:
        raise CorruptStore("plan", "must be the one that was begun; its lines were changed")
    return plan, head["about"]


def remove(path: Path) -> None:
    """The plan is carried out."""
    with suppress(FileNotFoundError):
        path.unlink()
    sync_folder(path)


def sync_folder(path: Path) -> None:
    """Make a file's name, or its absence, survive a power loss."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _policy(known: dict[str, Any]) -> Any:
    try:
        return from_dict(known)
    except InvalidValue:
        return Named(known["name"], known["configuration"])
