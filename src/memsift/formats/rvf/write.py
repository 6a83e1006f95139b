"""Writing a file: vectors, private segments, seal, manifest, in this order and in one go."""

from __future__ import annotations

import hashlib

from memsift.formats.rvf import chain, columns, documents, manifest, private, vec
from memsift.formats.rvf.files import Buffer, Path, replacing, write_all
from memsift.formats.rvf.manifest import Entry
from memsift.formats.rvf.private import Kind
from memsift.formats.rvf.segments import MANIFEST, VEC, encode_header
from memsift.formats.rvf.snapshot import RvfSnapshot, check

EPOCH = 1


class Writer:
    """Segments one after the other into a descriptor; keeps the directory and the digest of what is written."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._state = hashlib.sha256()
        self.length = 0
        self.directory: list[Entry] = []

    def segment(self, type_: int, parts: list[Buffer]) -> None:
        segment_id = len(self.directory) + 1
        header = encode_header(type_, segment_id, parts)
        size = sum(len(part) for part in parts)
        self.directory.append(Entry(segment_id, self.length, size, type_))
        for part in (header, *parts):
            write_all(self._fd, part)
            self._state.update(part)
            self.length += len(part)

    def private(self, kind: Kind, body: list[Buffer]) -> None:
        self.segment(kind, private.encode(kind, body))

    def finish(self, dim: int, total: int, file_id: bytes) -> None:
        """The manifest over everything so far."""
        payload = manifest.encode(
            dim=dim, total=total, directory=self.directory, file_id=file_id, epoch=EPOCH
        )
        self.segment(MANIFEST, [payload])

    def digest(self) -> bytes:
        return self._state.digest()


def write_rvf(path: Path, snapshot: RvfSnapshot) -> None:
    """Write `snapshot` to `path`: whole, synced and mode 0600, or not at all.

    The same snapshot gives the same bytes. What was at `path` stays until the new file is complete, and
    stays for good if anything fails; nothing else is left behind.

    Raises
    ------
    InvalidType, InvalidValue, InvalidMetadata
        The snapshot could not be read back as it is, or `path` is no regular file.
    OSError
        The disk is full or refuses.
    """
    check(snapshot)
    with replacing(path) as fd:
        _write(Writer(fd), snapshot)


def _write(writer: Writer, snapshot: RvfSnapshot) -> None:
    ids = snapshot.ids
    for payload in vec.encode(ids, snapshot.vectors):
        writer.segment(VEC, payload)
    if snapshot.columns is not None:
        for body in columns.encode(ids, snapshot.columns):
            writer.private(Kind.COLUMNS, body)
    if snapshot.metadata is not None:
        notes = [note or None for note in snapshot.metadata]
        for lines in documents.encode_metadata(ids, notes):
            writer.private(Kind.METADATA, [lines])
    if snapshot.state is not None:
        writer.private(Kind.STATE, [documents.encode_state(snapshot.state)])
    if snapshot.context is not None:
        writer.private(Kind.CONTEXT, vec.encode_context(snapshot.context))
    if snapshot.chain is not None:
        for lines in chain.encode(snapshot.chain):
            writer.private(Kind.AUDIT, [lines])
        writer.private(Kind.CHAIN, [chain.of_bodies(snapshot.chain)])
    sealed = writer.digest()
    writer.segment(Kind.SEAL, private.encode_seal(EPOCH, writer.length, sealed))
    writer.finish(snapshot.dim, len(ids), sealed[:16])
