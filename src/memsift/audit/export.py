"""A log as JSON lines: one canonical body a line, nothing else. Streams in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from memsift.audit.fields import InvalidRecord
from memsift.audit.shape import BODY_BYTES


def write(bodies: Iterable[bytes], stream: BinaryIO) -> int:
    """Write bodies to a binary stream, a line each. Returns how many.

    The bytes are the very ones that were hashed, so they can be verified anywhere with `chain.verify`.
    """
    count = 0
    for body in bodies:
        if b"\n" in body:
            raise InvalidRecord(f"a body must be one line; number {count + 1} is not")
        stream.write(body + b"\n")
        count += 1
    return count


def read(stream: BinaryIO) -> Iterator[bytes]:
    """The bodies of a binary stream, one at a time; what they say is for `chain.verify` to judge.

    Raises
    ------
    InvalidRecord
        A line is longer than any record, empty, cut off, or ends in a carriage return.
    """
    count = 0
    while line := stream.readline(BODY_BYTES + 2):
        count += 1
        if not line.endswith(b"\n"):
            cut = "longer than a record" if len(line) > BODY_BYTES else "cut off"
            raise InvalidRecord(f"line {count} of the log is {cut}")
        body = line[:-1]
        if not body:
            raise InvalidRecord(f"line {count} of the log is empty")
        if body.endswith(b"\r"):
            raise InvalidRecord(
                f"line {count} of the log ends in a carriage return: the file was converted as "
                "text, and its bytes are no longer those that were hashed"
            )
        yield body
