"""Asking an embedder, and not believing it: shapes, numbers and errors are checked before anything is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from memsift.agent.embedders.base import Embedder, checked, embed_and_count
from memsift.errors import EmbedderFailed, MemsiftError
from memsift.vectors import Rows

# Texts per call of the embedder: what progress is told by.
BATCH = 1024

Progress = Callable[[int, int], object]


def embedded(embedder: Embedder, texts: Sequence[str]) -> Rows:
    """Unit rows of checked texts: (n, dim) float32.

    Raises
    ------
    EmbedderFailed
        The embedder raised, or gave back no usable vectors.
    """
    return _asked(embedder, texts, lambda part: (embedder.embed(part), None), None)[0]


def counted(
    embedder: Embedder, texts: Sequence[str], progress: Progress | None = None
) -> tuple[Rows, list[int]]:
    """Unit rows of checked texts, and the tokens of each.

    Raises
    ------
    EmbedderFailed
    """
    return _asked(embedder, texts, lambda part: embed_and_count(embedder, part), progress)


def _asked(
    embedder: Embedder,
    texts: Sequence[str],
    ask: Callable[[Sequence[str]], tuple[object, list[int] | None]],
    progress: Progress | None,
) -> tuple[Rows, list[int]]:
    rows, counts = [], []
    whose = f"embedder {embedder.fingerprint!r:.210}"
    dim = int(embedder.dim)
    for start in range(0, len(texts), BATCH):
        part = texts[start : start + BATCH]
        try:
            given, tokens = ask(part)
        except MemsiftError:
            raise
        except Exception as error:
            # Without its cause: a foreign message may quote the text.
            raise EmbedderFailed(f"{whose} raised {type(error).__name__}") from None
        rows.append(checked(given, len(part), dim, whose))
        if tokens is not None and len(tokens) != len(part):
            raise EmbedderFailed(f"{whose} counted tokens of {len(tokens)} texts, not {len(part)}")
        counts += tokens or []
        if progress is not None:
            progress(start + len(part), len(texts))
    return np.concatenate(rows) if rows else np.empty((0, dim), np.float32), counts
