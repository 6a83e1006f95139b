"""Any server that speaks OpenAI's `POST /embeddings`: OpenAI itself, vLLM, llama.cpp, Ollama, TEI, ..."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from memsift import checks
from memsift.agent.embedders.base import FloatRows, checked, listed
from memsift.agent.embedders.function import printable
from memsift.agent.embedders.http import Endpoint, checked_url
from memsift.errors import EmbedderFailed, InvalidType, InvalidValue

OPENAI_HOST = "api.openai.com"
BATCH_TEXTS = 128
BATCH_BYTES = 256 * 1024


class OpenAIEmbedder:
    """A model behind an OpenAI-compatible HTTP interface.

    The bearer token comes from the environment alone, is read for each request and never shown: from `OPENAI_API_KEY`
    for OpenAI's own host, from `MEMSIFT_EMBEDDER_KEY` for any other, so that no key goes where it does not belong.
    Without one, none is sent. Redirects are never followed. What comes back is checked in full.

    Parameters
    ----------
    model : str
        The model's name, as the server knows it.
    base_url : str
        What comes before `/embeddings`. `https`, or `http` on loopback.
    dim : int, optional
        Found by one request if left out, when somebody asks.
    fingerprint : str, optional
        By default `openai:MODEL@HOST`; give one where two addresses serve one model.
    key_env : str, optional
        Another environment variable to take the key from.
    near_duplicate : float, optional
        The cosine from which two texts say the same; exact repeats only if left out.
    **endpoint
        `timeout_seconds` (30), `attempts` (4): see `Endpoint`.
    """

    def __init__(
        self,
        model: str,
        base_url: str = f"https://{OPENAI_HOST}/v1",
        dim: int | None = None,
        fingerprint: str | None = None,
        key_env: str | None = None,
        near_duplicate: float | None = None,
        **endpoint: Any,
    ) -> None:
        if not isinstance(model, str):
            raise InvalidType(f"model must be text; got {checks.shown(model)}")
        if not model or len(model) > 120:
            raise InvalidValue(f"model must be a name of 1 to 120 characters; got {len(model)}")
        host = checked_url(base_url).netloc
        env = key_env or ("OPENAI_API_KEY" if host == OPENAI_HOST else "MEMSIFT_EMBEDDER_KEY")
        self._model = model
        self._endpoint = Endpoint(f"{base_url.rstrip('/')}/embeddings", env, **endpoint)
        self._dim = None if dim is None else checks.integer(dim, "dim", 1, 65_536)
        self.fingerprint = printable(fingerprint or f"openai:{model}@{host}")
        if near_duplicate is not None:
            self.near_duplicate = checks.real(near_duplicate, "near_duplicate")

    @property
    def dim(self) -> int:
        """Length of every row. Costs one request, once."""
        if self._dim is None:
            self._dim = self._request(["dim"]).shape[1]
        return self._dim

    def embed(self, texts: Sequence[str]) -> FloatRows:
        """Unit rows: (n, dim) float32, in as many requests as it takes.

        Raises
        ------
        EmbedderFailed
            The server cannot be reached, refuses, or gives something else than one usable vector per text.
        """
        parts = [self._request(part) for part in _batches(listed(texts))]
        if not parts:
            return np.empty((0, self.dim), np.float32)
        # Each request is held to the length of the first.
        return np.concatenate(parts)

    def _request(self, texts: list[str]) -> FloatRows:
        answer = self._endpoint.post({"model": self._model, "input": texts})
        rows = checked(self._rows(answer, len(texts)), len(texts), self._dim, self._endpoint.host)
        if self._dim is None:
            self._dim = rows.shape[1]
        return rows

    def _rows(self, answer: Any, n: int) -> list[list[float]]:
        """The vectors in the order of the texts: servers may answer in another, and say so by `index`."""
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or len(data) != n:
            got = f"{len(data)}" if isinstance(data, list) else "none"
            raise EmbedderFailed(
                f"{self._endpoint.host} must give one vector per text: {n}; got {got}"
            )
        rows: dict[int, list[float]] = {}
        for item in data:
            index, vector = (
                (item.get(k) for k in ("index", "embedding"))
                if isinstance(item, dict)
                else (None, None)
            )
            if type(index) is not int or not 0 <= index < n or index in rows:
                raise EmbedderFailed(
                    f"{self._endpoint.host} must number its vectors from 0 to {n - 1}, each once"
                )
            if not isinstance(vector, list) or not all(type(x) in (int, float) for x in vector):
                raise EmbedderFailed(f"{self._endpoint.host} must give vectors as lists of numbers")
            rows[index] = vector
        return [rows[i] for i in range(n)]

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.fingerprint!r})"


def _batches(texts: list[str]) -> Iterator[list[str]]:
    """As many texts at once as a request may hold."""
    part: list[str] = []
    size = 0
    for text in texts:
        weight = len(text.encode())
        if part and (len(part) == BATCH_TEXTS or size + weight > BATCH_BYTES):
            yield part
            part, size = [], 0
        part.append(text)
        size += weight
    if part:
        yield part
