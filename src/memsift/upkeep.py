"""A thread in the background: it runs while there is something to do, in steps that nobody waits for.

Between two steps nothing is held and nothing is half done, and there alone the process may fork: what the child finds
is whole, and its thread is made anew when it is needed. The thread holds whom it works for weakly, so that a forgotten
store takes it along.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

# After a failure, nothing is tried for so long.
PAUSE_SECONDS = 30.0
# How long a fork waits for a step to end: they take milliseconds, and some wait for the lock of a store.
FORK_SECONDS = 1.0


class Kept(Protocol):
    """What is asked of whom it works for."""

    @property
    def lock(self) -> threading.RLock: ...

    def due(self) -> bool:
        """Whether there is something to do. Asked by any thread at any time."""
        ...

    def step(self) -> float | None:
        """Do a little of it. It may say for how many seconds there is nothing to do: in between, nothing is held."""
        ...

    def failed(self) -> None:
        """A step has failed: nothing that it worked on is to be trusted."""
        ...


class Closed(Exception):
    """Raised within a step when its owner is closed."""


class Upkeep:
    """Calls `step` in a thread of its own, for as long as something is due.

    Parameters
    ----------
    kept : Kept
    name : str
        Of the thread.

    Attributes
    ----------
    error : str or None
        What went wrong last.
    """

    def __init__(self, kept: Kept, name: str) -> None:
        self._kept, self._name = weakref.ref(kept), name
        self._lock = kept.lock
        self._thread: threading.Thread | None = None
        self._leaving = threading.Lock()  # held while the thread decides to end, or another is made
        self._stepping = threading.Lock()
        self._stop = threading.Event()
        self._not_before = 0.0
        self.error: str | None = None
        _ALL.add(self)

    @property
    def running(self) -> bool:
        return self._thread is not None

    @property
    def closed(self) -> bool:
        return self._stop.is_set()

    def wake(self) -> None:
        """See to it that what is due gets done."""
        if self._thread is None and self._wanted():
            with self._leaving:
                if self._thread is None:
                    self._start()

    def _start(self) -> None:
        thread = threading.Thread(
            target=_keep, args=(weakref.ref(self),), name=self._name, daemon=True
        )
        self._thread = thread
        try:
            thread.start()
        except RuntimeError as error:  # no threads left, or the interpreter is ending
            self._thread = None
            self._note(error)

    def _note(self, error: Exception) -> None:
        self.error = f"{type(error).__name__}: {error}"[:200]
        self._not_before = time.monotonic() + PAUSE_SECONDS

    def settle(self, seconds: float = 60.0) -> bool:
        """Wait until nothing is due; whether that came true in time. Not to be called with the store's lock held."""
        until = time.monotonic() + seconds
        while self._wanted() or self._thread is not None:
            self.wake()
            thread = self._thread
            if thread is not None:
                thread.join(max(0.0, until - time.monotonic()))
            if time.monotonic() >= until:
                return False
        return True

    def close(self) -> None:
        """End the thread, at once. The caller may hold the store's lock."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(FORK_SECONDS * 10)

    def rest(self, seconds: float) -> None:
        """Let some time pass within a step."""
        if self._stop.wait(seconds):
            raise Closed

    @contextmanager
    def held(self) -> Iterator[None]:
        """The store's lock; `Closed` instead, should whoever closes hold it meanwhile."""
        while not self._lock.acquire(timeout=0.05):
            if self.closed:
                raise Closed
        try:
            if self.closed:
                raise Closed
            yield
        finally:
            self._lock.release()

    def _wanted(self) -> bool:
        kept = self._kept()
        if kept is None or self.closed or time.monotonic() < self._not_before:
            return False
        return kept.due()

    def _turn(self) -> float | None:
        """One step; how many seconds until there may be another, None for no other."""
        with self._stepping:
            with self._leaving:
                # Under the lock, so that nobody relies on a thread that is about to end.
                if not self._wanted():
                    self._thread = None
                    return None
            kept = self._kept()
            try:
                if kept is not None:
                    return kept.step() or 0.0
            except Closed:
                return 0.0
            except Exception as error:
                self._note(error)
                if kept is not None:
                    kept.failed()
        return 0.0


def _keep(reference: weakref.ref[Upkeep]) -> None:
    while True:
        upkeep = reference()
        seconds = None if upkeep is None else upkeep._turn()
        if upkeep is None or seconds is None:
            return
        stop = upkeep._stop
        del upkeep
        if seconds:
            stop.wait(seconds)


# ---- fork and exit -------------------------------------------------------------------------------

_ALL: weakref.WeakSet[Upkeep] = weakref.WeakSet()
# By the thread that forks: there may be several.
_paused: dict[int, list[tuple[Upkeep, bool]]] = {}


def _before_fork() -> None:
    stopped = [(upkeep, upkeep._stepping.acquire(timeout=FORK_SECONDS)) for upkeep in list(_ALL)]
    _paused[threading.get_ident()] = stopped


def _after_fork() -> None:
    for upkeep, whole in _paused.pop(threading.get_ident(), []):
        if whole:
            upkeep._stepping.release()


def _after_fork_in_child() -> None:
    for upkeep, whole in _paused.pop(threading.get_ident(), []):
        upkeep._thread = None
        upkeep._leaving, upkeep._stepping = threading.Lock(), threading.Lock()
        kept = upkeep._kept()
        if kept is not None and not whole:
            kept.failed()  # it forked amid a step


def _at_exit() -> None:
    # A daemon thread that comes out of native code when the interpreter is gone would take the process down with it.
    for upkeep in list(_ALL):
        upkeep.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )
atexit.register(_at_exit)
