"""A thread that sweeps now and then."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from memsift.errors import MemsiftError

_LOG = logging.getLogger(__name__)


class Sweeper:
    """Calls `sweep` every so many seconds while it runs. An error is logged by its name alone, and it goes on."""

    def __init__(self, sweep: Callable[[], object]) -> None:
        self._sweep = sweep
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, seconds: float) -> None:
        """Begin; a running one goes on as it is."""
        if self._thread is None:
            self._stopped.clear()
            self._thread = threading.Thread(
                target=self._run, args=[seconds], name="memsift-sweeper", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """End, once a sweep that runs is through."""
        thread, self._thread = self._thread, None
        self._stopped.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self, seconds: float) -> None:
        while not self._stopped.wait(seconds):
            try:
                self._sweep()
            except MemsiftError as error:
                _LOG.warning("a sweep of expired items failed: %s", type(error).__name__)
