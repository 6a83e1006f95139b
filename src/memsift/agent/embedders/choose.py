"""From what users write to an embedder."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from memsift import checks
from memsift.agent.embedders import wordllama
from memsift.agent.embedders.base import Embedder
from memsift.agent.embedders.function import Function
from memsift.agent.embedders.hashed import HashedNgrams
from memsift.errors import InvalidType, InvalidValue

ALLOWED = "wordllama, hashed, minilm, openai:MODEL@https://HOST/v1 or sentence-transformers:NAME"


def default() -> Embedder:
    """The best that works offline with what is installed: `Wordllama`, or `HashedNgrams` with a warning."""
    if wordllama.installed():
        return wordllama.Wordllama()
    warnings.warn(
        "wordllama is not installed: texts are compared by their words and word pieces alone. "
        "Install memsift[embed] for vectors that know synonyms.",
        UserWarning,
        stacklevel=2,
    )
    return HashedNgrams()


def parse(spec: str) -> Embedder:
    """An embedder from one word, as the doors take it.

    >>> parse("hashed").fingerprint
    'hashed-ngrams@1/512'

    Raises
    ------
    InvalidValue
        No such embedder.
    """
    if not isinstance(spec, str):
        raise InvalidType(f"embedder must be one of {ALLOWED}; got {checks.shown(spec)}")
    kind, _, rest = spec.partition(":")
    if spec in _PLAIN:
        return _PLAIN[spec]()
    if kind in _NAMED and rest:
        return _NAMED[kind](rest)
    raise InvalidValue(f"embedder must be one of {ALLOWED}; got {checks.shown(spec)}")


def as_embedder(obj: Any, dim: int | None = None, fingerprint: str | None = None) -> Embedder:
    """An embedder as it is; a spec parsed; None the default; any function wrapped (see `Function`)."""
    if obj is None:
        return default()
    if isinstance(obj, str):
        return parse(obj)
    # Not `isinstance(obj, Embedder)`: that would read `dim`, which may load a model or cost a call.
    if callable(getattr(obj, "embed", None)) and not isinstance(obj, type):
        return obj  # type: ignore[no-any-return]
    if callable(obj) and not isinstance(obj, type):
        return Function(obj, dim, fingerprint)
    raise InvalidType(
        f"embedder must be an Embedder, a function of texts, or one of {ALLOWED}; got {checks.shown(obj)}"
    )


def _minilm() -> Embedder:
    from memsift.agent.embedders.minilm import MiniLM

    return MiniLM()


def _openai(rest: str) -> Embedder:
    from memsift.agent.embedders.openai import OpenAIEmbedder

    model, _, base = rest.rpartition("@")
    if not model:
        raise InvalidValue(
            "embedder must be openai:MODEL@https://HOST/v1; got no @, or no model before it"
        )
    return OpenAIEmbedder(model, base)


def _sentence_transformers(rest: str) -> Embedder:
    from memsift.agent.embedders.sentence import SentenceTransformer

    return SentenceTransformer(rest)


_PLAIN: dict[str, Callable[[], Embedder]] = {
    "wordllama": wordllama.Wordllama,
    "hashed": HashedNgrams,
    "minilm": _minilm,
}
_NAMED: dict[str, Callable[[str], Embedder]] = {
    "openai": _openai,
    "sentence-transformers": _sentence_transformers,
}
