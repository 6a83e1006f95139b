"""What a forked child says."""

from __future__ import annotations

import os
import select
from collections.abc import Callable

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def in_a_fork(work: Callable[[], object], seconds: float = 10.0) -> str:
    """What `work()` says in a forked child, which must say it in time."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(into, str(work()).encode())
        except BaseException as error:
            os.write(into, repr(error).encode())
        finally:
            os._exit(0)
    os.close(into)
    try:
        ready, _, _ = select.select([out], [], [], seconds)
        return os.read(out, 1000).decode() if ready else "it hangs"
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(out)
