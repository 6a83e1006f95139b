"""An access log as one `.npz`: arrays that are checked one by one; nothing runs, and nothing allocates without bound.

Members are stored, not compressed, so that none can be larger than the file. One entry per event: `kind`, `at`, `flag`,
`cost`, `k`, `touch`, and `size`, the number of its ids; all ids end to end in `ids`; `groups` of the needs' ids;
`vectors` of memories and queries. `version` and `score_from` have one element.
"""

from __future__ import annotations

import io
import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memsift import checks
from memsift.accesslog.events import ADD, NEED, NO_IDS, QUERY, Event
from memsift.errors import CorruptStore, InvalidValue
from memsift.formats.rvf.files import opened, replacing, write_all

VERSION = 1
# Type and number of axes of each array.
ARRAYS: dict[str, tuple[str, int]] = {
    "version": ("<i8", 1),
    "score_from": ("<f8", 1),
    "kind": ("|u1", 1),
    "at": ("<f8", 1),
    "flag": ("|b1", 1),
    "cost": ("<i8", 1),
    "k": ("<i8", 1),
    "touch": ("<i8", 1),
    "size": ("<i8", 1),
    "ids": ("<i8", 1),
    "groups": ("<i8", 1),
    "vectors": ("<f4", 2),
}
PER_EVENT = ("at", "flag", "cost", "k", "touch", "size")
# What damaged bytes make zipfile and numpy raise; numpy parses headers as Python literals.
UNREADABLE = (
    ValueError, KeyError, EOFError, RuntimeError, OverflowError, SyntaxError, MemoryError, OSError,
    NotImplementedError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class Contents(NamedTuple):
    """What a file says, with its arrays in step but its events not yet checked."""

    events: Iterator[Event]
    dim: int
    score_from: float


def write(
    path: str | os.PathLike[str], events: Sequence[Event], dim: int, score_from: float
) -> None:
    """Put a log at `path` (0600), whole or not at all; what was there stays until then.

    Raises
    ------
    InvalidValue
        Something other than a regular file is there, or the folder does not exist.
    """
    vectors = [event.vector for event in events if event.vector is not None]
    arrays: dict[str, Any] = {"version": [VERSION], "score_from": [score_from]}
    arrays["kind"] = [event.kind for event in events]
    for name in PER_EVENT[:-1]:
        arrays[name] = [getattr(event, name) for event in events]
    arrays["size"] = [event.ids.size for event in events]
    arrays["ids"] = np.concatenate([NO_IDS, *(event.ids for event in events)])
    arrays["groups"] = np.concatenate([NO_IDS, *(event.groups for event in events)])
    arrays["vectors"] = np.array(vectors, "<f4").reshape(len(vectors), dim)
    raw = io.BytesIO()
    typed = {name: np.array(arrays[name], kind) for name, (kind, _) in ARRAYS.items()}
    np.savez(raw, allow_pickle=False, **typed)
    path = checks.path(path)
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise InvalidValue(f"path must lie in a folder that exists; got {os.fspath(path)[-60:]!r}")
    with replacing(path) as fd:
        write_all(fd, raw.getbuffer())


def read(path: str | os.PathLike[str]) -> Contents:
    """What the log at `path` holds.

    Raises
    ------
    InvalidValue
        No file can be opened there.
    CorruptStore
        Naming the array.
    """
    path = checks.path(path, "log")
    try:
        with opened(path) as source:
            data = source.read(0, source.size, "log")
    except OSError as error:
        raise InvalidValue(
            f"log must be a file that can be read; {os.fspath(path)[-60:]!r}: {error.strerror}"
        ) from None
    arrays = _arrays(data)
    if arrays["version"].tolist() != [VERSION]:
        raise CorruptStore(
            "log", f"version must be {VERSION}; got {arrays['version'].tolist()[:3]}"
        )
    return Contents(_events(arrays), arrays["vectors"].shape[1], _score_from(arrays["score_from"]))


def _arrays(data: bytearray) -> dict[str, npt.NDArray[Any]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.namelist()
            wanted = [f"{name}.npy" for name in ARRAYS]
            if sorted(members) != sorted(wanted):
                odd = sorted(set(members) ^ set(wanted)) or ["one of them twice"]
                raise CorruptStore(
                    "log", f"must hold {', '.join(ARRAYS)}; differs at {', '.join(odd)[:80]}"
                )
            return {name: _array(archive, name) for name in ARRAYS}
    except UNREADABLE as error:
        if isinstance(error, CorruptStore):
            raise
        raise CorruptStore("log", f"must be a readable .npz; {error!s:.80}") from None


def _array(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise CorruptStore("log", f"{name} must be stored without compression; it is not")
    try:
        raw = archive.read(info)
        stream = io.BytesIO(raw)
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("another version of the format")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    except UNREADABLE as error:
        raise CorruptStore("log", f"{name} must be a readable array; {error!s:.80}") from None
    kind, axes = ARRAYS[name]
    if dtype.str != kind or len(shape) != axes or fortran:
        raise CorruptStore(
            "log", f"{name} must be {kind} with {axes} axes; got {dtype.str} of shape {shape}"
        )
    # Python's numbers do not overflow, whatever the header says.
    size = dtype.itemsize
    for length in shape:
        size *= length
    body = memoryview(raw)[stream.tell() :]
    if size != len(body) or min(shape) < 0:
        raise CorruptStore("log", f"{name} must hold what its shape {shape} says; it does not")
    found: npt.NDArray[Any] = np.frombuffer(body, dtype).reshape(shape)
    return found


def _score_from(array: npt.NDArray[Any]) -> float:
    if array.shape != (1,) or not 0.0 <= array[0] < 1.0:
        raise CorruptStore(
            "log", f"score_from must be one number from 0 to below 1; got {array[:3]}"
        )
    return float(array[0])


def _events(arrays: dict[str, npt.NDArray[Any]]) -> Iterator[Event]:
    kinds, sizes, flags = arrays["kind"], arrays["size"], arrays["flag"]
    n, ids = len(kinds), arrays["ids"]
    for name in PER_EVENT:
        if len(arrays[name]) != n:
            raise CorruptStore(
                "log", f"{name} must hold {n}, one per event; got {len(arrays[name])}"
            )
    if flags.view(np.uint8).max(initial=0) > 1:
        raise CorruptStore("log", "flag must hold true and false; it holds something else")
    # Each at most the whole, and then their sum cannot overflow.
    if sizes.min(initial=0) < 0 or sizes.max(initial=0) > len(ids) or sizes.sum() != len(ids):
        raise CorruptStore("log", f"size must add up to the {len(ids)} ids; it does not")
    needs, fat = kinds == NEED, (kinds == ADD) | (kinds == QUERY)
    if sizes[needs].sum() != len(arrays["groups"]):
        raise CorruptStore("log", "groups must hold one for each id of a need; it does not")
    if np.count_nonzero(fat) != len(arrays["vectors"]):
        raise CorruptStore(
            "log", f"vectors must hold {np.count_nonzero(fat)} rows; got {len(arrays['vectors'])}"
        )
    return _rows(arrays)


def _rows(arrays: dict[str, npt.NDArray[Any]]) -> Iterator[Event]:
    native = {name: arrays[name].astype(kind[1:]) for name, (kind, _) in ARRAYS.items()}
    lists = [native[name].tolist() for name in ("kind", *PER_EVENT)]
    at_id = at_group = at_vector = 0
    for kind, at, flag, cost, k, touch, size in zip(*lists, strict=True):
        ids, groups, vector = native["ids"][at_id : at_id + size].copy(), NO_IDS, None
        at_id += size
        if kind == NEED:
            groups = native["groups"][at_group : at_group + size].copy()
            at_group += size
        if kind in (ADD, QUERY):
            vector = native["vectors"][at_vector].copy()
            at_vector += 1
        yield Event(kind, at, ids, vector, cost, k, touch, flag, groups)
