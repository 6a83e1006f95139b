"""A sift: a plan carried out batch by batch, each archived, deleted and recorded, so that it may be stopped any time.

The plan lies in a file beside the chain and never changes; the chain says how far it went. A batch is deleted in one
transaction of the source, then recorded. Whoever goes on after a kill does the last batch again: what is gone already
cannot go twice, and what changed since the plan has another mark.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memsift import checks
from memsift.backends import planfile
from memsift.backends.archive import ArchiveFile
from memsift.backends.base import Applied, Source, SourcePlan
from memsift.backends.chain import Chain
from memsift.backends.planning import as_window
from memsift.errors import InvalidValue

BATCH = 1000


@dataclass(frozen=True)
class SiftReport:
    """What a sift did, all its runs together.

    Parameters
    ----------
    dropped : int
        Victims that are gone.
    spared : int
        Victims that stay, since they were touched, changed or pinned after the plan was made.
    audit_head : str or None
        Hash of the last record; None if there was nothing to do.
    chain, archive : Path or None
    """

    dropped: int
    spared: int
    audit_head: str | None
    chain: Path
    archive: Path | None

    def __str__(self) -> str:
        words = f"{self.dropped:,} entries are gone"
        if self.spared:
            words += f", {self.spared:,} were spared: touched, changed or pinned after the plan"
        return words


class Sift:
    """A plan and how far it is carried out. Made by `begin` or `resume`."""

    def __init__(self, source: Source, chain: Path, *, fresh: bool) -> None:
        self._source, self.chain, self._fresh = source, chain, fresh
        self.plan, about = planfile.read(plan_path(chain))
        if self.plan.source != source.name:
            raise InvalidValue(
                f"source must be the one that the sift was begun with, {self.plan.source}; "
                f"got {source.name}"
            )
        self._batch: int = checks.integer(about.get("batch"), "batch", 1)
        self._context: str | None = about.get("context")
        if about.get("into") != _into(source):
            raise InvalidValue(
                "archive_into must be the table that the sift was begun with: "
                f"{checks.shown(about.get('into'))}; got {checks.shown(_into(source))}"
            )
        archive = about.get("archive")
        self.archive = None if archive is None else ArchiveFile(archive, self.plan.id)

    @classmethod
    def begin(
        cls,
        source: Source,
        plan: SourcePlan,
        chain: str | os.PathLike[str],
        *,
        archive: str | os.PathLike[str] | None = None,
        batch: int = BATCH,
        context: object = None,
    ) -> Sift:
        """Write a plan down; nothing of the source changes yet.

        Parameters
        ----------
        chain : path
            A .memsift file, made if it does not exist; the plan lies beside it until it is carried out.
        archive : path, optional
            A .memsift or .rvf file for what leaves.
        batch : int
            Victims that leave in one transaction.
        context : (w, dim) array-like, optional
            The window that the plan was made with; its digest goes into the audit.

        Raises
        ------
        InvalidValue
            A sift with this chain was begun and not finished.
        """
        at = checks.path(chain)
        size = checks.integer(batch, "batch", 1, 1_000_000)
        where = None if archive is None else ArchiveFile(archive, plan.id)
        if where is not None and where.path.suffix == ".rvf" and where.path.exists():
            raise InvalidValue(f"archive must be a new .rvf file; {where.path.name} exists")
        if unfinished(at):
            raise InvalidValue(f"chain must have no unfinished sift; {at.name} has one: resume it")
        book = Chain(at)
        try:
            empty = context is None or not len(context)  # type: ignore[arg-type]
            digest = None if empty else book.context_digest(as_window(context))  # type: ignore[arg-type]
        finally:
            book.close()
        about = {
            "batch": size,
            "context": digest,
            "archive": None if where is None else str(where.path.absolute()),
            "into": _into(source),
        }
        planfile.write(plan_path(at), plan, about)
        return cls(source, at, fresh=True)

    @classmethod
    def resume(cls, source: Source, chain: str | os.PathLike[str]) -> Sift:
        """The sift that was begun with this chain and not finished.

        Raises
        ------
        InvalidValue
            There is none, or it was begun with another source.
        CorruptStore
            The plan was changed.
        """
        at = checks.path(chain)
        if not unfinished(at):
            raise InvalidValue(f"chain must have an unfinished sift; {at.name} has none")
        return cls(source, at, fresh=False)

    def run(self, progress: Callable[[int], None] | None = None) -> SiftReport:
        """Carry the plan out to its end. `progress` is called with the number of victims that were seen to."""
        book, fresh = Chain(self.chain), self._fresh
        self._fresh = False
        try:
            before = book.progress(self.plan.id)
            if progress is not None:
                progress(min(len(self.plan), before.batches * self._batch))
            for batch in range(before.batches, -(-len(self.plan) // self._batch)):
                part = self.plan.part(batch * self._batch, (batch + 1) * self._batch)
                # The batch where a run before stopped may be done, and only not recorded.
                again = not fresh and batch == before.batches
                done = self._carry_out(part, batch, again=again)
                book.append(self.plan, batch, done, self._context)
                if progress is not None:
                    progress(len(part))
            if self.archive is not None:
                self.archive.finish()
            after = book.progress(self.plan.id)
            planfile.remove(plan_path(self.chain))
        finally:
            book.close()
            if self.archive is not None:
                self.archive.close()
        path = None if self.archive is None else self.archive.path
        return SiftReport(after.dropped, after.spared, after.head, self.chain, path)

    def _carry_out(self, part: SourcePlan, batch: int, *, again: bool) -> Applied:
        archive = self.archive
        done = self._source.apply(part, None if archive is None else archive.of(batch))
        # Where the system has no transactions, some may be archived and then spared.
        if archive is not None and (again or done.spared):
            archive.settle(batch, done)
        if not again:
            return done
        # Who knows whether the run before or somebody else deleted them: the plan wanted it.
        return Applied(done.dropped + done.absent, done.spared, [])


def unfinished(chain: str | os.PathLike[str]) -> bool:
    """Whether a sift with this chain was begun and not finished."""
    return plan_path(checks.path(chain)).exists()


def _into(source: Source) -> str | None:
    """The table within the source that gets what leaves, where a source has such."""
    return getattr(source, "archive_into", None)


def plan_path(chain: Path) -> Path:
    """Where the plan lies that is being carried out."""
    return chain.with_name(f"{chain.name}.plan")
