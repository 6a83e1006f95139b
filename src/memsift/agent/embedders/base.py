"""What an embedder is: one method, a dimension and a fingerprint; the rest has defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy.typing as npt

from memsift.errors import InvalidType

# From this cosine on two texts say the same, for an embedder that does not state its own.
NEAR_DUPLICATE = 0.97
BYTES_PER_TOKEN = 4


@runtime_checkable
class Embedder(Protocol):
    """Makes a vector of each text.

    Attributes
    ----------
    dim : int
        Length of every vector.
    fingerprint : str
        What must be the same for two vectors to be comparable: name, version, dimension or hash; printable ASCII, at
        most 200 characters.
    near_duplicate : float, optional
        Cosine from which two texts say the same.
    tokens : callable, optional
        Numbers of tokens of texts, by the embedder's own tokenizer.
    """

    @property
    def dim(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    def embed(self, texts: Sequence[str]) -> npt.ArrayLike:
        """Vectors of these texts: (n, dim) float32."""
        ...


def near_duplicate(embedder: Embedder) -> float:
    """The cosine from which two texts say the same to this embedder."""
    return float(getattr(embedder, "near_duplicate", NEAR_DUPLICATE))


def tokens(embedder: Embedder, texts: Sequence[str]) -> list[int]:
    """How many tokens each text has: by the embedder's own tokenizer, else a quarter of its bytes; at least 1."""
    counted: Any = getattr(embedder, "tokens", None)
    if counted is None:
        return [-(-len(text.encode()) // BYTES_PER_TOKEN) for text in texts]
    return [max(1, int(count)) for count in counted(texts)]


def as_embedder(obj: Any) -> Embedder:
    """An embedder as it is."""
    if isinstance(obj, type) or not isinstance(obj, Embedder):
        raise InvalidType(
            f"embedder must have embed, dim and fingerprint; got a {type(obj).__name__}"
        )
    return obj
