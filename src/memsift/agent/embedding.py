"""Asking an embedder, and not believing it: shapes, numbers and errors are checked before anything is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from memsift.agent.embedders.base import Embedder, tokens
from memsift.errors import EmbedderFailed, InvalidValue, MemsiftError, ZeroVector
from memsift.vectors import Rows, as_unit_rows

# Texts per call of the embedder: what progress is told by.
BATCH = 1024

Progress = Callable[[int, int], object]


def embedded(
    embedder: Embedder, texts: Sequence[str], name: str, progress: Progress | None = None
) -> Rows:
    """Unit rows of checked texts: (n, dim) float32.

    Raises
    ------
    EmbedderFailed
        The embedder raised, or gave back no finite (n, dim) numbers.
    InvalidValue
        A text means nothing to it: its vector is zero.
    """
    dim = int(embedder.dim)
    rows = np.empty((len(texts), dim), np.float32)
    for start in range(0, len(texts), BATCH):
        part = texts[start : start + BATCH]
        rows[start : start + len(part)] = _of_part(embedder, part, dim, name, start)
        if progress is not None:
            progress(start + len(part), len(texts))
    return rows


def costs(embedder: Embedder, texts: Sequence[str]) -> list[int]:
    """Tokens of checked texts, as the budget's `cost` counts them.

    Raises
    ------
    EmbedderFailed
    """
    try:
        found = tokens(embedder, texts)
    except MemsiftError:
        raise
    except Exception as error:
        raise _failed(embedder, f"its tokenizer raised {type(error).__name__}") from None
    if len(found) != len(texts):
        raise _failed(embedder, f"its tokenizer gave {len(found)} numbers for {len(texts)} texts")
    return found


def _of_part(embedder: Embedder, part: Sequence[str], dim: int, name: str, start: int) -> Rows:
    try:
        given = embedder.embed(part)
    except MemsiftError:
        raise
    except Exception as error:
        # Without its cause: a foreign message may quote the text.
        raise _failed(embedder, f"it raised {type(error).__name__}") from None
    shape = np.shape(given)
    if shape != (len(part), dim):
        raise _failed(embedder, f"it must give vectors of shape {(len(part), dim)}; got {shape}")
    try:
        return as_unit_rows(given, dim)
    except ZeroVector:
        wide = np.asarray(given, np.float64)
        bad = start + int(np.argmin(np.vecdot(wide, wide)))
        raise InvalidValue(
            f"{name}[{bad}] must mean something to the embedder; its vector is zero"
        ) from None
    except MemsiftError as error:
        raise _failed(
            embedder, f"its vectors must be finite numbers; got {type(error).__name__}"
        ) from None


def _failed(embedder: Embedder, what: str) -> EmbedderFailed:
    return EmbedderFailed(f"embedder {embedder.fingerprint!r:.210} failed: {what}")
