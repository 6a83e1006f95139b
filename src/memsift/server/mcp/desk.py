"""What stands behind the tools: one memory of one file, opened aside while the server starts, and the last plan."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memsift.agent import AgentMemory

# Says how far a long call is: done, total.
Progress = Callable[[int, int], object]


class Desk:
    """The memory that a server serves. The namespace is fixed here: no call names another.

    Parameters
    ----------
    open_memory : callable
        Opens it; runs in a thread at once, so that the protocol's own start is not waited for.
    namespace : str
    read_only : bool
        Nothing that a client asks for changes the memory.
    """

    def __init__(
        self, open_memory: Callable[[], AgentMemory], namespace: str, *, read_only: bool = False
    ) -> None:
        self.namespace, self.read_only = namespace, read_only
        self.last_plan: dict[str, Any] | None = None
        self._memory: AgentMemory | None = None
        self._failed: BaseException | None = None
        self._opening = threading.Thread(target=self._open, args=(open_memory,), daemon=True)
        self._opening.start()

    @property
    def memory(self) -> AgentMemory:
        """The memory; waits until it is open, and raises what kept it from opening."""
        self.wait()
        assert self._memory is not None
        return self._memory

    def wait(self) -> None:
        """Wait until the memory is open; raise what kept it from opening."""
        self._opening.join()
        if self._failed is not None:
            raise self._failed

    def source(self, id_: int) -> str:
        """Where a memory comes from, for whoever reads it in a reply."""
        return f"memsift://{self.namespace}/{id_}"

    def close(self) -> None:
        """Write what waits, and let go of the file."""
        self._opening.join()
        if self._memory is not None:
            self._memory.close()

    def _open(self, open_memory: Callable[[], AgentMemory]) -> None:
        try:
            self._memory = open_memory()
        except BaseException as error:  # whatever it was, whoever asks for the memory gets it
            self._failed = error
