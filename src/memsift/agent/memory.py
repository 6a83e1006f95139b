"""An agent's memory: texts in, texts out, over a store in a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from memsift import admission, checks
from memsift.agent import embedders
from memsift.agent.duplicates import NEAREST, twins
from memsift.agent.embedders import Embedder
from memsift.agent.embedding import BATCH, Progress, costs, embedded
from memsift.agent.records import AgentStats, Recollection, Remembered
from memsift.budget import Budget
from memsift.checks import Metadata
from memsift.durable import DurableStore
from memsift.errors import UnknownEntry
from memsift.kernels import Float32
from memsift.plan import Plan
from memsift.policies.base import CompactionPolicy
from memsift.store import MemoryStore
from memsift.types import Compaction, Receipt

Target = Budget | float | None


class AgentMemory:
    """A memory of texts in a file, inside a hard budget. Made by `AgentMemory.open`, which see.

    Every call is whole or nothing, several processes may share the file, and several threads the memory.

    Attributes
    ----------
    store : DurableStore
        What keeps the vectors: everything that can be done with entries by their ids can be done there too.
    embedder : Embedder
    payloads : bool
        Whether texts are kept.
    near_duplicate : float
        Cosine from which two texts say the same; above 1, only equal ones do.
    """

    def __init__(
        self, store: DurableStore, embedder: Embedder, near_duplicate: float, *, payloads: bool
    ) -> None:
        self.store, self.embedder = store, embedder
        self.near_duplicate, self.payloads = near_duplicate, payloads

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        namespace: str = "default",
        embedder: Any = None,
        budget: Budget | int | None = None,
        *,
        policy: CompactionPolicy | None = None,
        payloads: bool = True,
        near_duplicate: float | None = None,
        background: bool = False,
        **store_options: Any,
    ) -> Self:
        """Open a memory in a file, or make one.

        Parameters
        ----------
        path, namespace, budget, policy, store_options
            As for `MemoryStore.open`. `Budget(cost=n)` counts tokens.
        embedder : Embedder, str, callable or None
            What makes vectors of texts: an object with `embed`, `dim` and `fingerprint`; a name such as `hashed`; a
            function of texts; None for the default, which works offline. The file keeps its fingerprint.
        payloads : bool
            Keep the texts in the file. Without them, what comes out are ids and metadata.
        near_duplicate : float above 0, optional
            Cosine from which two texts say the same; the embedder's own by default, 1.0 or more for equal texts only.
        background : bool
            Compact in a thread before the budget is reached, so that additions seldom have to.

        Raises
        ------
        EmbedderMismatch
            Another embedder filled this namespace. `reembed` changes that, from a memory opened with the old one.
        InvalidType, InvalidValue, CorruptStore, StoreBusy, DiskTrouble, MissingExtra
        """
        keep = checks.flag(payloads, "payloads")
        chosen = _embedder(embedder)
        least = _threshold(near_duplicate, chosen)
        options: dict[str, Any] = {
            "dim": int(chosen.dim),
            "embedder": str(chosen.fingerprint),
        } | store_options
        store = MemoryStore.open(path, namespace=namespace, budget=budget, policy=policy, **options)
        return cls(store, chosen, least, payloads=keep)

    # ---- in --------------------------------------------------------------------------------------

    def remember(
        self,
        text: str,
        *,
        metadata: Metadata | None = None,
        importance: float | None = None,
        pinned: bool = False,
        supersedes: Any = None,
        created_at: Any = None,
    ) -> Remembered:
        """Keep a text, or refresh the entry that says the same.

        A refreshed entry keeps its id, its text and its history; it counts as accessed, and takes on what was given of
        metadata, importance and `pinned=True`.

        Parameters
        ----------
        text : str
            1 to 65,536 bytes of UTF-8.
        supersedes : id or ids, optional
            Entries that this text replaces: they leave for the archive in the same transaction.

        Raises
        ------
        UnknownEntry
            An entry to be superseded is not in the memory; nothing was changed.
        EmbedderFailed, InvalidType, InvalidValue, InvalidMetadata, BudgetExceeded
            Nothing was changed.
        """
        said = checks.text(text)
        old = None if supersedes is None else checks.ids(supersedes, "supersedes")
        given = [metadata], importance, pinned, created_at
        return self._remember([said], *given, supersedes=old, name="text")[0]

    def remember_many(
        self,
        texts: Iterable[str],
        *,
        metadata: Sequence[Metadata | None] | None = None,
        importance: Any = None,
        pinned: Any = False,
        created_at: Any = None,
        progress: Progress | None = None,
    ) -> list[Remembered]:
        """Keep many texts: the same as one by one, but all or none, and much faster.

        Parameters
        ----------
        texts : iterable of str
        metadata : list of n dicts or None
        importance, pinned, created_at
            One value for all or a list of one for each.
        progress : callable, optional
            Told how many of how many texts are embedded, now and then. An error of its own ends the call.

        Raises
        ------
        As `remember`.
        """
        said = checks.texts(texts)
        return self._remember(said, metadata, importance, pinned, created_at, progress=progress)

    def _remember(
        self,
        texts: list[str],
        metadata: Sequence[Metadata | None] | None,
        importance: Any,
        pinned: Any,
        created_at: Any,
        *,
        supersedes: Any = None,
        progress: Progress | None = None,
        name: str = "texts",
    ) -> list[Remembered]:
        # Everything that can be refused is, before the embedder works; and it works before anybody has to wait.
        admission.check(
            len(texts), metadata, importance, pinned, 0.0 if created_at is None else created_at
        )
        rows = embedded(self.embedder, texts, name, progress)
        cost = costs(self.embedder, texts)
        if metadata is not None:
            metadata = list(metadata)
        out: list[Remembered] = []
        store = self.store
        with store.transaction():
            if supersedes is not None:
                store.retire(supersedes)
            before, last = store.ids(), store.last_compaction
            for start in range(0, len(texts), BATCH):
                part = range(start, min(start + BATCH, len(texts)))
                given = {"metadata": metadata, "importance": importance, "pinned": pinned}
                given |= {"created_at": created_at, "cost": cost}
                out += self._keep(rows[start : part.stop], texts[start : part.stop], part, given)
            if store.last_compaction is not last:
                known = np.union1d(before, [one.id for one in out])
                left = known[~store.holds(known)]
                out[-1] = replace(out[-1], evicted=tuple(left.tolist()))
        return out

    def _keep(
        self, rows: Float32, texts: list[str], part: range, given: dict[str, Any]
    ) -> list[Remembered]:
        """Add what is new of a batch, refresh what is not. Within the transaction."""
        hits = self.store.search_many(rows, NEAREST, touch=False)
        found = twins(rows, texts, self.near_duplicate, hits, self.store.texts.get)
        new = [i for i, twin in enumerate(found) if twin is None]
        values = {name: _of(value, [part[i] for i in new]) for name, value in given.items()}
        ids = self.store.add_many(rows[new], **values) if new else np.empty(0, np.int64)
        if self.payloads and new:
            self._put(ids, [texts[i] for i in new])
        id_of = dict(zip(new, ids.tolist(), strict=True))
        out = []
        for i, twin in enumerate(found):
            if twin is None:
                out.append(Remembered(id_of[i], added=True))
                continue
            id_ = twin.id if twin.id >= 0 else id_of[-1 - twin.id]
            self._refresh(id_, {name: _at(value, part[i]) for name, value in given.items()})
            out.append(Remembered(id_, added=False, similarity=twin.similarity))
        return out

    def _put(self, ids: npt.NDArray[np.int64], texts: list[str]) -> None:
        """Keep the texts of newcomers, some of which may have made room for others and be gone."""
        here = self.store.holds(ids)
        if not here.all():
            here |= np.isin(ids, self.store.archived())
        self.store.texts.put(
            ids[here], [text for text, is_here in zip(texts, here, strict=True) if is_here]
        )

    def _refresh(self, id_: int, given: dict[str, Any]) -> None:
        store = self.store
        if id_ not in store:  # of the same batch, and gone by now
            return
        store.touch(id_)
        changes = {k: given[k] for k in ("metadata", "importance") if given[k] is not None}
        if changes:
            store.update(id_, **changes)
        if given["pinned"]:
            store.pin(id_)

    # ---- out -------------------------------------------------------------------------------------

    def recall(
        self,
        query: str,
        k: int = 5,
        *,
        where: dict[str, Any] | None = None,
        touch: bool | int = True,
        include_archived: bool = False,
    ) -> list[Recollection]:
        """The `k` entries nearest to what `query` says, best first.

        Parameters
        ----------
        where : dict, optional
            Filter on metadata, as in `MemoryStore.search`; not together with `include_archived`.
        touch : bool or int
            True counts an access of all of them, n of the best n; False leaves no trace.
        include_archived : bool
            Also among what was evicted and can be restored.
        """
        row = embedded(self.embedder, [checks.text(query, "query")], "query")[0]
        hits = self.store.search(
            row, k, where=where, touch=touch, include_archived=include_archived
        )
        found = self._recollections([hit.id for hit in hits], [hit.score for hit in hits])
        # Another process may have removed one since it was found.
        return [one for one in found if one is not None and (include_archived or not one.archived)]

    def get(self, ids: Any) -> list[Recollection | None]:
        """The entries of these ids, live or archived, in the order asked; None where there is none. Touches nothing."""
        wanted = checks.ids(ids).tolist()
        return self._recollections(wanted, [None] * len(wanted))

    def _recollections(
        self, ids: list[int], scores: Sequence[float | None]
    ) -> list[Recollection | None]:
        entries = self.store.get(ids, include_archived=True)
        live, texts = self.store.holds(ids).tolist(), self.store.texts.get(ids)
        return [
            None if entry is None else Recollection.of(entry, text, score, archived=not is_live)
            for entry, text, score, is_live in zip(entries, texts, scores, live, strict=True)
        ]

    # ---- what is known of entries ----------------------------------------------------------------

    def feedback(self, ids: Any, *, used: bool = True) -> None:
        """Say that these entries helped. To be recalled is not to be used; only this counts as use."""
        self.store.feedback(ids, used=used)

    def pin(self, ids: Any) -> None:
        """Pinned entries are never evicted."""
        self.store.pin(ids)

    def unpin(self, ids: Any) -> None:
        """Let the policy judge these entries again."""
        self.store.unpin(ids)

    def forget(self, ids: Any) -> None:
        """Delete entries with their texts, pinned or not. They cannot be restored; `erase` also cleans the file."""
        self.store.delete(ids)

    def explain(self, id_: int) -> dict[str, Any]:
        """Why an entry would stay or leave if the memory were compacted now.

        Returns
        -------
        dict
            As of `Plan.explain`, with `entry`, the entry itself as a dict; `verdict` is `archived` for one that left.

        Raises
        ------
        UnknownEntry
        """
        wanted = checks.integer(id_, "id_", 0)
        entry = self.get(wanted)[0]
        if entry is None:
            raise UnknownEntry(
                f"id_ must be in the memory or its archive; got {wanted}, which is not"
            )
        if entry.archived:
            return {"id": wanted, "verdict": "archived", "entry": asdict(entry)}
        plan = self.store.plan(None if self.store.budget.limits else 1.0)
        return plan.explain(wanted) | {"entry": asdict(entry)}

    # ---- forgetting ------------------------------------------------------------------------------

    def plan(
        self,
        target: Target = None,
        policy: CompactionPolicy | None = None,
        context: Any = None,
        *,
        force: bool = False,
    ) -> Plan:
        """What would be forgotten. Changes nothing. As `MemoryStore.plan`, but `context` may be texts too."""
        return self.store.plan(target, policy, self._context(context), force=force)

    def apply(self, plan: Plan) -> Compaction:
        """Do what a plan says, sparing what was recalled, used, changed or pinned since it was made."""
        return self.store.apply(plan)

    def compact(
        self,
        target: Target = None,
        policy: CompactionPolicy | None = None,
        context: Any = None,
        *,
        force: bool = False,
    ) -> Compaction:
        """`plan`, then `apply`."""
        return self.store.compact(target, policy, self._context(context), force=force)

    def _context(self, context: Any) -> Any:
        """Vectors as they came, texts as vectors."""
        texts = [context] if isinstance(context, str) else context
        if isinstance(texts, (list, tuple)) and texts and isinstance(texts[0], str):
            return embedded(self.embedder, checks.texts(texts, "context"), "context")
        return texts

    def restore(self, ids: Any) -> Compaction | None:
        """Bring entries back from the archive, with their texts; what left to make room, if anything did."""
        return self.store.restore(ids)

    def erase(self, ids: Any) -> Receipt:
        """Remove entries for good, live or archived, from every place within reach; see `DurableStore.erase`."""
        return self.store.erase(ids)

    # ---- life ------------------------------------------------------------------------------------

    def stats(self) -> AgentStats:
        """Figures of this moment."""
        store = self.store
        held = store.stats(), store.namespace, store.embedder, self.payloads
        return AgentStats(*held, store.texts.nbytes())

    def close(self) -> None:
        """Write what waits and let the file go. Closing twice is no error."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.store)

    def __repr__(self) -> str:
        return f"AgentMemory({len(self)} entries in {self.store.namespace!r}, {self.embedder.fingerprint})"


def _embedder(given: Any) -> Embedder:
    if given is None:
        return embedders.default()
    if isinstance(given, str):
        return embedders.parse(given)
    return embedders.as_embedder(given)


def _threshold(given: Any, embedder: Embedder) -> float:
    if given is None:
        return embedders.near_duplicate(embedder)
    least = checks.real(given, "near_duplicate", "above 0")
    checks.fraction(min(least, 1.0), "near_duplicate", zero=False)
    return least if least < 1.0 else 2.0


def _of(value: Any, places: list[int]) -> Any:
    """What of `value`, one for all or one for each, belongs to these places of a batch."""
    return [value[i] for i in places] if _is_many(value) else value


def _at(value: Any, place: int) -> Any:
    return value[place] if _is_many(value) else value


def _is_many(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray))
