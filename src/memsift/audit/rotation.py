"""Changes of keys: a record of kind `key` introduces a key, signed by the new one and by the one it follows.

What they sign names the store and the place in its chain, so the note of one record is worth nothing in another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from memsift.audit import keys
from memsift.audit.chain import genesis
from memsift.audit.fields import InvalidKey
from memsift.audit.heads import Position
from memsift.audit.record import Record

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_NEW = ("key_id", "public_key", "signature")
_OLD = ("old_key_id", "old_public_key", "old_signature")


def key_note(
    previous: Position | None,
    store_id: str,
    new_key: Ed25519PrivateKey,
    old_key: Ed25519PrivateKey | None = None,
) -> dict[str, Any]:
    """The note of the key record that follows `previous`; without `old_key` the first key of a store.

    Heads that cover this record must be signed by the new key.
    """
    seq = 1 if previous is None else previous.seq + 1
    prev = genesis(store_id) if previous is None else previous.hash
    new = keys.public_key(new_key)
    old = b"" if old_key is None else keys.public_key(old_key)
    if new == old:
        raise InvalidKey("new_key must be another key than old_key")
    message = _message(store_id, seq, prev, old, new)
    note = dict(zip(_NEW, (keys.key_id(new), new.hex(), new_key.sign(message).hex()), strict=True))
    if old_key is not None:
        signature = old_key.sign(message).hex()
        note |= zip(_OLD, (keys.key_id(old), old.hex(), signature), strict=True)
    return note


def follow(records: Iterable[Record], store_id: str, public_key: bytes) -> keys.KeyHistory:
    """From a key that is trusted to those that came after it, each vouched for by the one before.

    Parameters
    ----------
    records : iterable of Record
        A log, or only its key records (others are passed over): they vouch for themselves, so those that were
        exported before a pruning do as well.
    public_key : bytes, 32
        Known from somewhere else than the log.

    Raises
    ------
    InvalidKey
        A key record that follows the trusted key is not signed by it and by its successor.
    """
    changes = [_change(r, store_id) for r in records if r.kind == "key"]
    keys.key_id(public_key)
    # A holder of a later key need not care how the log came to it.
    known = next((i for i, c in enumerate(changes) if c[2] == public_key and c[3]), -1)
    # The first key of a store was in force from the start; heads may be older than its record.
    begin = changes[known][0] if known >= 0 and changes[known][1] else 0
    epochs = [(begin, public_key)]
    for seq, old, new, sound in changes[known + 1 :]:
        if not sound or old != epochs[-1][1] or seq <= epochs[-1][0]:
            raise InvalidKey(
                f"the key record {seq} must be signed by key {keys.key_id(epochs[-1][1])} and by "
                "the new one, at its place in this store's log"
            )
        epochs.append((seq, new))
    return keys.KeyHistory(tuple(epochs))


def _change(record: Record, store_id: str) -> tuple[int, bytes, bytes, bool]:
    """A key record as (seq, old key or b"", new key, whether both signed it)."""
    note = record.note
    wanted = _NEW + _OLD if any(name in note for name in _OLD) else _NEW
    if set(note) != set(wanted):
        raise InvalidKey(f"the note of key record {record.seq} must tell {', '.join(wanted)}")
    try:
        new = bytes.fromhex(note["public_key"])
        old = bytes.fromhex(note.get("old_public_key", ""))
        message = _message(store_id, record.seq, record.prev, old, new)
        sound = note["key_id"] == keys.key_id(new)
        sound = sound and keys.is_signed(new, bytes.fromhex(note["signature"]), message)
        if old:
            sound = sound and note["old_key_id"] == keys.key_id(old)
            sound = sound and keys.is_signed(old, bytes.fromhex(note["old_signature"]), message)
    except (ValueError, TypeError):
        raise InvalidKey(
            f"the note of key record {record.seq} must hold keys and signatures in hex"
        ) from None
    return record.seq, old, new, sound


def _message(store_id: str, seq: int, prev: str, old: bytes, new: bytes) -> bytes:
    lines = ("memsift.audit.key", store_id, str(seq), prev, old.hex() or "-", new.hex())
    return "".join(line + "\n" for line in lines).encode()
