"""An agent's memory: texts in, texts out, over a store in a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Self

import numpy as np

from memsift import admission, checks
from memsift.agent import embedders
from memsift.agent.embedders import Embedder
from memsift.agent.embedding import Progress, counted, embedded
from memsift.agent.keeping import NewTexts, keep
from memsift.agent.records import AgentStats, Recollection, Remembered
from memsift.background import Compactor
from memsift.budget import Budget
from memsift.checks import Metadata
from memsift.durable import DurableStore
from memsift.errors import EmbedderMismatch, UnknownEntry
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
        self,
        store: DurableStore,
        embedder: Embedder,
        near_duplicate: float | None = None,
        *,
        payloads: bool = True,
    ) -> None:
        self.store, self.embedder, self.payloads = store, embedder, payloads
        self._near_duplicate = near_duplicate
        self.near_duplicate = _threshold(near_duplicate, embedder)

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
            function of texts; None for the default, which works offline. The file keeps its fingerprint; a namespace
            that names none yet takes this one.
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
        keep, ahead = checks.flag(payloads, "payloads"), checks.flag(background, "background")
        chosen = embedders.chosen(embedder)
        _threshold(near_duplicate, chosen)  # before a file is made
        store = MemoryStore.open(
            path,
            int(chosen.dim),
            namespace,
            budget,
            policy,
            embedder=str(chosen.fingerprint),
            **store_options,
        )
        if ahead:
            Compactor(store).start()
        return cls(store, chosen, near_duplicate, payloads=keep)

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
        return self._remember([said], *given, supersedes=old)[0]

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
    ) -> list[Remembered]:
        # Everything that can be refused is, before the embedder works; and it works before anybody has to wait.
        admission.check(
            len(texts), metadata, importance, pinned, 0.0 if created_at is None else created_at
        )
        embedder = self.embedder
        rows, cost = counted(embedder, texts, progress)
        given = {
            "metadata": metadata if metadata is None else list(metadata),
            "importance": importance,
            "pinned": pinned,
            "created_at": created_at,
            "cost": cost,
        }
        with self.store.transaction():
            self._demand(embedder)
            if supersedes is not None:
                self.store.retire(supersedes)
            new = NewTexts(texts, rows, given)
            return keep(self.store, new, self.near_duplicate, payloads=self.payloads)

    def _demand(self, embedder: Embedder) -> None:
        """What was embedded a moment ago can still be compared with what is in the store."""
        if self.store.embedder != embedder.fingerprint:
            raise EmbedderMismatch(
                f"the memory was embedded anew by {self.store.embedder!r} meanwhile; call again"
            )

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
        embedder = self.embedder
        row = embedded(embedder, [checks.text(query, "query")])[0]
        hits = self.store.search(
            row, k, where=where, touch=touch, include_archived=include_archived
        )
        self._demand(embedder)
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
        # Texts first: an entry that another process deletes meanwhile is then missing, not without words.
        texts = self.store.texts.get(ids)
        entries, live = self.store.get(ids, include_archived=True), self.store.holds(ids).tolist()
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
            return embedded(self.embedder, checks.texts(texts, "context"))
        return texts

    def restore(self, ids: Any) -> Compaction | None:
        """Bring entries back from the archive, with their texts; what left to make room, if anything did."""
        return self.store.restore(ids)

    def erase(self, ids: Any) -> Receipt:
        """Remove entries for good, live or archived, from every place within reach; see `DurableStore.erase`."""
        return self.store.erase(ids)

    def reembed(self, embedder: Any, *, progress: Progress | None = None) -> None:
        """Make all vectors anew with another embedder, archived ones included: all of them or none.

        Ids, texts, metadata, counters and costs stay. What was measured with the old vectors goes: recent queries,
        ghosts and regret, what the policy has learned, a recorded access log. Other processes that have the memory open
        get `EmbedderMismatch` at their next call, and must open it again.

        Parameters
        ----------
        embedder : Embedder, str or callable
            As for `open`.
        progress : callable, optional
            Told how many of how many texts are embedded, now and then.

        Raises
        ------
        InvalidValue
            An entry has no text: the memory keeps none, or the entry came without one.
        EmbedderFailed, BudgetExceeded
            Nothing was changed.
        """
        chosen = embedders.chosen(embedder)
        store, rows_of = self.store, {}
        if store.texts.count() == len(store) + store.archived().size:  # else it is refused
            said = list(dict.fromkeys(text for _, text in store.texts.all()))
            rows_of = dict(zip(said, counted(chosen, said, progress)[0], strict=True))

        def rows(texts: list[str]) -> Float32:
            # What others have written since waits no longer than it takes to embed that.
            late = list(dict.fromkeys(text for text in texts if text not in rows_of))
            rows_of.update(zip(late, embedded(chosen, late), strict=True))
            dim = int(chosen.dim)
            return np.array([rows_of[text] for text in texts], np.float32).reshape(-1, dim)

        store.reembed(rows, int(chosen.dim), str(chosen.fingerprint))
        self.embedder = chosen
        self.near_duplicate = _threshold(self._near_duplicate, chosen)

    # ---- life ------------------------------------------------------------------------------------

    def stats(self) -> AgentStats:
        """Figures of this moment."""
        store, figures = self.store, self.store.stats()
        held = figures, store.namespace, store.embedder, self.payloads
        return AgentStats(*held, store.texts.nbytes(), figures.compactor)

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
        return f"AgentMemory({self.store.namespace!r} in {self.store.path.name}, {self.embedder.fingerprint})"


def _threshold(given: Any, embedder: Embedder) -> float:
    if given is None:
        return embedders.near_duplicate(embedder)
    least = checks.real(given, "near_duplicate", "above 0")
    checks.fraction(min(least, 1.0), "near_duplicate", zero=False)
    return least if least < 1.0 else embedders.EXACT_ONLY
