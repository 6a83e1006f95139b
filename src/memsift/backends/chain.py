"""The audit chain of sifts: the namespace `sift` of a .memsift file, a record for each batch of a plan."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memsift.audit import State, shape
from memsift.audit.record import hash_of
from memsift.audit.replay import policy_fields
from memsift.backends.base import Applied, SourcePlan
from memsift.backends.ids import audit_numbers
from memsift.budget import Budget
from memsift.errors import StoreBusy
from memsift.store import MemoryStore

NAMESPACE = "sift"


class Progress(NamedTuple):
    """How far a plan went: batches that are recorded, victims gone and spared in them, the last record's hash."""

    batches: int = 0
    dropped: int = 0
    spared: int = 0
    head: str | None = None


class Chain:
    """Records of what sifts did. They hold no id, vector or text: victims are committed to under the file's key."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._store = MemoryStore.open(path, dim=1, namespace=NAMESPACE, durability="full")
        self.path: Path = self._store.path
        self.audit = self._store.audit
        self._seen: tuple[str, str, Progress] | None = None

    def progress(self, plan_id: str) -> Progress:
        """What the chain says of a plan."""
        end = self.audit.head().hash
        # Nobody wrote since: a long chain need not be read again for each of its records.
        if self._seen is None or self._seen[:2] != (plan_id, end):
            self._seen = plan_id, end, self._read(plan_id)
        return self._seen[2]

    def _read(self, plan_id: str) -> Progress:
        bodies = [json.loads(body) for body in self.audit.bodies()]
        own = [body for body in bodies if body["note"].get("plan") == plan_id]
        return Progress(
            len(own),
            sum(body["evicted_count"] for body in own),
            sum(body["spared"] for body in own),
            None if not own else hash_of(shape.dumps(own[-1])),
        )

    def append(self, plan: SourcePlan, batch: int, done: Applied, context: str | None) -> str:
        """Record batch number `batch` of a plan, from 0 on; returns the record's hash.

        Raises
        ------
        StoreBusy
            The chain is at another batch: another process goes on with the same sift.
        """
        with self._store.recording() as write:
            before = self.progress(plan.id)
            if before.batches != batch:
                raise StoreBusy(
                    f"batch {batch} must follow batch {batch - 1} in {self.path.name}; it has "
                    f"{before.batches}: another process carries out the same sift"
                )
            held = plan.held - before.dropped
            gone = len(done.dropped)
            head = write(
                time.time(),
                policy=policy_fields(plan.policy),
                budget=Budget(max(1, plan.held - sum(share.leaving for share in plan.shares))),
                before=State(held, 0, 0, None),
                after=State(held - gone, 0, 0, None),
                context_digest=context,
                evicted=audit_numbers(done.dropped),
                spared=len(done.spared),
                forced=plan.forced,
                note={"plan": plan.id, "batch": batch, "absent": len(done.absent)},
            )
            spared = before.spared + len(done.spared)
            self._seen = plan.id, head, Progress(batch + 1, before.dropped + gone, spared, head)
            return head

    def context_digest(self, context: npt.NDArray[np.float32] | None) -> str | None:
        """The digest of a window under the file's key; None without one."""
        return None if context is None else self.audit.context_digest(context)

    def close(self) -> None:
        self._store.close()
