"""Any model that the package sentence-transformers loads."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from memsift import checks
from memsift.agent.embedders import files
from memsift.agent.embedders.base import FloatRows, checked, listed
from memsift.agent.embedders.function import LONGEST_FINGERPRINT
from memsift.errors import EmbedderFailed, InvalidType, InvalidValue


class SentenceTransformer:
    """A sentence-transformers model by name. The package is imported, and the model loaded, at the first text.

    Parameters
    ----------
    name : str
        As `sentence_transformers.SentenceTransformer` takes it: a name of the hub, which may be downloaded, or a
        folder. A model that wants to run code of its own is refused by that package.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise InvalidType(f"name must be text; got {checks.shown(name)}")
        if not name.strip():
            raise InvalidValue("name must be that of a model; got nothing")
        files.demand(("sentence_transformers",), "sentence-transformers")
        self._name = name
        self._using = threading.RLock()
        self._model: Any = None

    @cached_property
    def fingerprint(self) -> str:
        """The model's name, a folder's without the way to it. Two versions of one name are not told apart."""
        name = (
            os.path.basename(os.path.normpath(self._name)) if _is_folder(self._name) else self._name
        )
        said = f"sentence-transformers:{name}"
        if len(said) <= LONGEST_FINGERPRINT and said.isascii() and said.isprintable():
            return said
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        return f"sentence-transformers:{digest[:16]}"

    @cached_property
    def dim(self) -> int:
        """Length of every row. Loads the model."""
        return int(self._encoded(["dim"], None).shape[1])

    def embed(self, texts: Sequence[str]) -> FloatRows:
        """Unit rows: (n, dim) float32."""
        found = listed(texts)
        return self._encoded(found, self.dim) if found else np.empty((0, self.dim), np.float32)

    def tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has by the model's own tokenizer."""
        found = listed(texts)
        with self._loaded() as model:
            return [len(model.tokenizer.encode(text, add_special_tokens=False)) for text in found]

    def _encoded(self, texts: list[str], dim: int | None) -> FloatRows:
        with self._loaded() as model:
            rows = model.encode(texts, convert_to_numpy=True, show_progress_bar=False)
        return checked(rows, len(texts), dim, self.fingerprint)

    @contextmanager
    def _loaded(self) -> Iterator[Any]:
        """The model, one thread at a time; what it raises becomes an `EmbedderFailed`."""
        with self._using:
            try:
                if self._model is None:
                    from sentence_transformers import SentenceTransformer as Model

                    self._model = Model(self._name)
                yield self._model
            except Exception as error:
                kind = type(error).__name__
                raise EmbedderFailed(f"{self.fingerprint} failed ({kind})") from error

    def __repr__(self) -> str:
        return f"SentenceTransformer({self.fingerprint!r})"


def _is_folder(name: str) -> bool:
    return os.path.isabs(name) or os.path.isdir(name)
