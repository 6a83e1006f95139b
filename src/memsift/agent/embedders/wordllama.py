"""Static token vectors that come in a wheel: no download, no torch, some 25,000 short texts a second."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memsift.agent.embedders import files
from memsift.agent.embedders.base import EXACT_ONLY, FloatRows, checked, listed

PACKAGES = ("wordllama", "tokenizers", "safetensors")
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
TENSOR = "embedding.weight"
# Texts that are split into tokens at once: their tokens are all in memory then.
BATCH = 512


def installed() -> bool:
    """Whether everything that `Wordllama` needs is there. Imports none of it."""
    return not files.missing(PACKAGES)


class Loaded(NamedTuple):
    """A tokenizer and (vocabulary, dim) float16 token vectors."""

    tokenizer: Any
    weights: npt.NDArray[np.float16]


class Wordllama:
    """The mean of a text's token vectors, from the wheel of `wordllama` (`memsift[embed]`).

    Only that wheel's two data files are read; its code is never run (its loader asks the network, and gives NaN for
    empty text). Rows are its own to float32 precision. A mean knows no word order and hardly any negation:

    Of 40 pairs that say something else by a word or its place, 9 have a cosine of 1 and the median is .95; of 40 that
    say the same in other case, punctuation or spelling, the median is .97. So no cosine is a near duplicate's.

    Parameters
    ----------
    folder : path, optional
        Where the two files lie; the installed package by default.
    """

    near_duplicate = EXACT_ONLY

    def __init__(self, folder: Path | None = None) -> None:
        files.demand(PACKAGES if folder is None else PACKAGES[1:], "embed")
        self._root = files.folder_of("wordllama") if folder is None else folder
        self._loading = threading.Lock()
        self._loaded: Loaded | None = None

    @cached_property
    def dim(self) -> int:
        """Length of every row, from the header of the weights."""
        from safetensors import safe_open

        with files.reading("wordllama"), safe_open(self._root / WEIGHTS, "np") as file:
            return int(file.get_slice(TENSOR).get_shape()[1])

    @cached_property
    def fingerprint(self) -> str:
        """Name, prefixes of the SHA-256 of weights and tokenizer, dim. Reading the files takes some 30 ms."""
        with files.reading("wordllama"):
            sums = [files.sha256(self._root / name)[:12] for name in (WEIGHTS, TOKENIZER)]
        return f"wordllama-l2-supercat@{'-'.join(sums)}/{self.dim}"

    def embed(self, texts: Sequence[str]) -> FloatRows:
        """Unit rows: (n, dim) float32. Empty text is refused: it has no tokens, so no direction."""
        return self.embed_and_count(texts)[0]

    def tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has."""
        found, tokenizer = listed(texts), self._load().tokenizer
        return [len(ids) for ids in _split(tokenizer, found)]

    def embed_and_count(self, texts: Sequence[str]) -> tuple[FloatRows, list[int]]:
        """Rows and token counts, from one pass of the tokenizer."""
        found = listed(texts)
        tokenizer, weights = self._load()
        rows = np.empty((len(found), weights.shape[1]), np.float32)
        counts = []
        for row, ids in zip(rows, _split(tokenizer, found), strict=True):
            row[:] = weights[ids].astype(np.float32).mean(axis=0)
            counts.append(len(ids))
        return checked(rows, len(found), weights.shape[1], "Wordllama"), counts

    def _load(self) -> Loaded:
        with self._loading:
            if self._loaded is None:
                from safetensors.numpy import load_file
                from tokenizers import Tokenizer

                with files.reading("wordllama"):
                    tokenizer = Tokenizer.from_file(str(self._root / TOKENIZER))
                    self._loaded = Loaded(tokenizer, load_file(self._root / WEIGHTS)[TENSOR])
            return self._loaded

    def __repr__(self) -> str:
        return "Wordllama()"


def _split(tokenizer: Any, texts: list[str]) -> Iterator[list[int]]:
    """The token ids of each text."""
    for start in range(0, len(texts), BATCH):
        part = texts[start : start + BATCH]
        for encoding in tokenizer.encode_batch_fast(part, add_special_tokens=False):
            yield encoding.ids
