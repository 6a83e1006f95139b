"""What of an item is embedded, and the rows that come of it.

A row has 16 elements more than the embedding. They are 0 for what was embedded. An item without a vector points in a
direction of its own there: upright to every query and every other vector, so it takes no part in anybody's cosines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from langgraph.store.base import IndexConfig, PutOp, get_text_at_path, tokenize_path

from memsift import checks
from memsift.adapters.keys import Name
from memsift.errors import DimensionMismatch, InvalidType
from memsift.kernels import Float32

BESIDE = 16


def paths(config: IndexConfig | None, op: PutOp) -> list[Any]:
    """Where in an item's value there is something to embed; none if it is not to be found by meaning."""
    if config is None or op.index is False or op.value is None:
        return []
    fields = (config.get("fields") or ["$"]) if op.index is None else op.index
    if isinstance(fields, str) or not isinstance(fields, Sequence):
        raise InvalidType(f"index must be False or a list of paths; got {checks.shown(fields)}")
    return [path if path == "$" else tokenize_path(path) for path in fields]


def texts(config: IndexConfig | None, op: PutOp) -> list[str]:
    """What is embedded of an item, each once."""
    value = dict(op.value) if isinstance(op.value, Mapping) else op.value
    found = [text for path in paths(config, op) for text in get_text_at_path(value, path)]
    return list(dict.fromkeys(found))


def rows(name: Name, embedded: Sequence[npt.ArrayLike], dims: int) -> Float32:
    """Rows of an item: (max(1, n), dims + 16) float32."""
    made = np.zeros((max(1, len(embedded)), dims + BESIDE), np.float32)
    for row, vector in zip(made, embedded, strict=False):
        row[:dims] = as_row(vector, dims)
    empty = ~made.any(axis=1)
    if empty.any():
        made[empty, dims:] = _direction(name)
    return made


def as_row(vector: npt.ArrayLike, dims: int) -> Float32:
    """One embedding, of the length that was promised."""
    row = np.asarray(vector, np.float32)
    if row.shape != (dims,):
        raise DimensionMismatch(
            f"embed must give vectors of {dims} elements (index['dims']); got shape {row.shape}"
        )
    return row


def _direction(name: Name) -> Float32:
    seed = hashlib.sha256(repr(tuple(name)).encode("utf-8", "surrogatepass")).digest()
    row = np.frombuffer(seed, "<u2")[:BESIDE].astype(np.float32) - 32767.5
    return row / np.linalg.norm(row)
