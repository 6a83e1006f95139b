"""Stdout kept for the protocol, from before the first import that could print."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def wire() -> Iterator[tuple[int, int]]:
    """Private copies of stdin and stdout; meanwhile fd 1 is stderr and fd 0 is empty.

    Whoever prints, a native library too, writes to stderr, and a child process cannot eat the client's messages.
    """
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    printed, sys.stdout = sys.stdout, sys.stderr
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield source, sink
    finally:
        os.dup2(source, 0)
        os.dup2(sink, 1)
        sys.stdout = printed
        # `source` stays open: a thread may still wait on it, and its number must not become another file's.
        os.close(nothing)
        os.close(sink)
