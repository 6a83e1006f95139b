"""Looking for what was erased: every byte of every file of a folder, in every spelling that comes to mind."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np

CANARY_DIM = 32


def canary(number: int) -> np.ndarray[Any, Any]:
    """A unit vector that nothing else resembles."""
    vector = np.random.default_rng((777, number)).normal(size=CANARY_DIM)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def secret(number: int) -> str:
    return f"canary-{number}-öäü-{number * 7919}"


def spellings(vector: Any, text: str) -> dict[str, bytes]:
    """What a copy of an entry could look like. Pieces are long enough not to be there by chance."""
    raw = np.asarray(vector, "<f4")
    floats, halves = raw.tobytes(), raw.astype("<f2").tobytes()
    found = {
        "float32": floats,
        "float32, first half": floats[: len(floats) // 2],
        "float32, second half": floats[len(floats) // 2 :],
        "float32, a piece of 16 bytes": floats[40:56],
        "big-endian float32": raw.astype(">f4").tobytes()[:32],
        "float64": raw.astype("<f8").tobytes()[:64],
        "float16": halves[:32],
        "int8": np.round(raw * 127).astype(np.int8).tobytes()[:24],
        "int8, scaled by row": np.rint(raw * (127 / np.abs(raw).max()))
        .astype(np.int8)
        .tobytes()[:24],
        "hex": floats.hex().encode()[:64],
        "HEX": floats.hex().upper().encode()[:64],
        "JSON decimals of float32": ",".join(str(x) for x in raw[:4]).encode(),
        "JSON decimals": ", ".join(repr(float(x)) for x in raw[:4]).encode(),
        "JSON decimals, compact": ",".join(repr(float(x)) for x in raw[:4]).encode(),
        "UTF-8": text.encode(),
        "UTF-16": text.encode("utf-16-le"),
        "UTF-16, big-endian": text.encode("utf-16-be"),
        "JSON escapes": text.encode("unicode-escape").replace(b"\\x", b"\\u00"),
    }
    for shift in range(3):  # base64 reads three bytes at a time, from wherever a copy begins
        found[f"base64, from byte {shift}"] = base64.b64encode(floats[shift : shift + 48])
    return found


def scan(folder: Path, wanted: dict[str, bytes]) -> list[str]:
    """`file: spelling` for each that is there."""
    hits = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        data = path.read_bytes()
        hits += [f"{path.name}: {name}" for name, needle in wanted.items() if needle in data]
    return hits
