"""What an embedder is, and what is asked of the texts that go in and of the rows that come out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from memsift.errors import EmbedderFailed, InvalidType, InvalidValue, MemsiftError
from memsift.vectors import as_unit_rows

FloatRows = npt.NDArray[np.float32]

# What a text costs where the embedder has no tokenizer: about four bytes to a token of English.
BYTES_PER_TOKEN = 4
# No cosine reaches it: only exact repeats are the same.
EXACT_ONLY = 1.01


@runtime_checkable
class Embedder(Protocol):
    """Whatever turns texts into vectors.

    Making one loads nothing heavy; the first `embed` does. All may be called by several threads at once.

    Two attributes more are read where they exist: `near_duplicate`, the cosine from which two texts say the same, and
    `tokens(texts)`, a list of token counts. One that knows both of a text at once has `embed_and_count(texts)`.
    """

    @property
    def dim(self) -> int:
        """Length of every row. Of a remote model or a stranger's function, asking may cost one call."""
        ...

    @property
    def fingerprint(self) -> str:
        """Which model this is: printable ASCII, at most 200 characters, known without a call.

        Vectors of two fingerprints are never compared.
        """
        ...

    def embed(self, texts: Sequence[str]) -> FloatRows:
        """One row per text: (n, dim) float32, finite, none of length zero."""
        ...


def near_duplicate(embedder: Embedder) -> float:
    """The cosine from which two texts say the same by this embedder; `EXACT_ONLY` where nobody measured it."""
    return float(getattr(embedder, "near_duplicate", EXACT_ONLY))


def tokens(embedder: Embedder, texts: Sequence[str]) -> list[int]:
    """How many tokens each text takes, at least 1: by the embedder's own tokenizer, or a fourth of its bytes."""
    count: Any = getattr(embedder, "tokens", None)
    if count is None:
        return [max(1, -(-len(text.encode()) // BYTES_PER_TOKEN)) for text in listed(texts)]
    return [max(1, int(n)) for n in count(texts)]


def embed_and_count(embedder: Embedder, texts: Sequence[str]) -> tuple[FloatRows, list[int]]:
    """`embed` and `tokens` in one go: splitting text into tokens is most of the work of a static model."""
    both: Any = getattr(embedder, "embed_and_count", None)
    if both is None:
        return embedder.embed(texts), tokens(embedder, texts)
    rows, counts = both(texts)
    return rows, [max(1, int(n)) for n in counts]


def several(texts: object) -> None:
    """Refuse one text in place of a list: it would be taken for a list of letters."""
    if isinstance(texts, (str, bytes)):
        raise InvalidType(f"texts must be a list of texts; got one {type(texts).__name__}")


def listed(texts: Sequence[str]) -> list[str]:
    """The texts as a list. What they say stays out of every message.

    Raises
    ------
    InvalidType
        One text in place of several, or something that is no text.
    InvalidValue
        An empty text, or one with a lone surrogate.
    """
    several(texts)
    found = list(texts)
    for i, text in enumerate(found):
        if not isinstance(text, str):
            raise InvalidType(f"texts[{i}] must be text; got {type(text).__name__}")
        if not text:
            raise InvalidValue(f"texts[{i}] must have at least 1 character; got none")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidValue(f"texts[{i}] must be valid Unicode; got a lone surrogate") from None
    return found


def checked(rows: Any, n: int, dim: int | None, whose: str) -> FloatRows:
    """What an embedder gave back as (n, dim) float32 unit rows.

    Raises
    ------
    EmbedderFailed
        Another number of rows, another length, no numbers, NaN, infinity, or a row without a direction.
    """
    try:
        found = as_unit_rows(rows, None if n else dim, "rows")
    except MemsiftError as error:
        raise EmbedderFailed(f"{whose} gave no usable vectors: {error}") from None
    if len(found) != n:
        raise EmbedderFailed(f"{whose} must give one vector per text: {n}; it gave {len(found)}")
    if dim is not None and found.shape[1] != dim:
        raise EmbedderFailed(f"{whose} must give vectors of {dim} numbers; got {found.shape[1]}")
    return found
