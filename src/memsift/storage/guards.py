"""What calls of a durable store enter: its lock, and the other processes' changes or a transaction."""

from __future__ import annotations

import weakref
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from memsift.errors import InvalidValue, MemsiftError

if TYPE_CHECKING:
    from memsift.durable import DurableStore


class Guard:
    """What every call enters. It holds its store weakly: a store in a circle would outlive its last user."""

    def __init__(self, store: DurableStore) -> None:
        self._store = weakref.proxy(store)


class Reading(Guard):
    """The lock, and whatever other processes have written since."""

    def __enter__(self) -> None:
        store = self._store
        # Before the lock: a fork may have copied it while another thread held it.
        store._check_process()
        store._lock.acquire()
        try:
            if store._depth == 0:
                store._check_usable()
                if store._journal.moved():
                    # Should it fail half-way, the next call reads everything anew.
                    store._stale = True
                    store._journal.follow(store._memory)
                    store._stale = False
        except BaseException:
            store._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        store = self._store
        try:
            if store._depth == 0:
                store._flush_later()
        finally:
            store._lock.release()


class Writing(Guard):
    """The lock and a transaction; inside another one, only the lock."""

    def __enter__(self) -> None:
        store = self._store
        # Before the lock: a fork may have copied it while another thread held it.
        store._check_process()
        store._lock.acquire()
        try:
            if store._depth == 0:
                store._check_usable()
                store._begin()
            else:
                store._journal.settle(store._memory)
            store._depth += 1
        except BaseException:
            store._lock.release()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        store = self._store
        store._depth -= 1
        try:
            if store._depth:
                # What failed half-way is not to be made true by a caller who swallows the error.
                store._doomed |= kind is not None
                return
            try:
                if kind is None and store._doomed:
                    raise InvalidValue(
                        "a transaction in which a call failed must not go on as if it had not; nothing was changed"
                    )
                if kind is None:
                    store._journal.commit(store._memory)
            except BaseException:
                kind = BaseException
                raise
            finally:
                store._doomed = False
                if kind is not None:
                    # An interrupt may have come between a change and the note of it.
                    ahead = store._journal.wrote or not issubclass(kind, Exception)
                    store._stale |= ahead
                    store._memory.last_compaction = store._last
                    store._journal.rollback()
                    if store._stale:
                        # The caller hears of the first error; a second one is met again by the next call.
                        with suppress(MemsiftError):
                            store._reload()
        finally:
            store._lock.release()
