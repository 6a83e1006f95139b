"""A head: the last record's place and hash, as a short note that can be kept where the store cannot reach it.

The text has the lines of a C2SP tlog-checkpoint, and the signature is that of a C2SP signed note. The hash is the head
of a chain, not a tree's root.

    memsift.audit/4f1d...
    1204
    CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=
    time 1764000000000000000
    key 9c1185a5c5e9fc54

    — memsift.audit/4f1d... Az3grlgtzPICa5OS8npVmf1Myq/5...
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from memsift import checks
from memsift.audit import fields, keys
from memsift.audit.fields import InvalidHead, InvalidKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ORIGIN = "memsift.audit/"
NOTE_CHARACTERS = 65_536

_TEXT = re.compile(
    r"memsift\.audit/(?P<store_id>[0-9A-Za-z_.-]+)\n"
    r"(?P<seq>0|[1-9][0-9]{0,18})\n"
    r"(?P<hash>[0-9A-Za-z+/]{43}=)\n"
    r"time (?P<time>0|[1-9][0-9]{0,18})\n"
    r"(?:key (?P<key_id>[0-9a-f]{16})\n)?"
).fullmatch
_SIGNATURE = re.compile(r"\u2014 (?P<name>[^\s+]+) (?P<blob>[0-9A-Za-z+/]+={0,2})\n").fullmatch


class Position(Protocol):
    """A place in a log: a `Record`, or a `Head`."""

    @property
    def seq(self) -> int: ...

    @property
    def hash(self) -> str: ...


@dataclass(frozen=True)
class Head:
    """How far a log went at a time.

    Parameters
    ----------
    store_id : str
    seq : int, from 0
        Seq of the last record, which is the number of records ever written.
    hash : str
        Its hash in hex; of an empty log, `chain.genesis(store_id)`.
    time : int
        Unix time in nanoseconds, UTC.
    """

    store_id: str
    seq: int
    hash: str
    time: int

    def __post_init__(self) -> None:
        fields.store_id(self.store_id)
        for name in ("seq", "time"):
            value = getattr(self, name)
            if not fields.is_number(value):
                raise InvalidHead(
                    f"{name} must be a number from 0 to 19 digits; got {checks.shown(value)}"
                )
        if not fields.is_hash(self.hash):
            raise InvalidHead(
                f"hash must be 64 lowercase hex characters; got {checks.shown(self.hash)}"
            )

    @classmethod
    def parse(cls, text: str) -> Head:
        """The head of a note without a signature. Trust it as far as the place where it was kept."""
        head, key_id = _parsed(text)
        if key_id is not None:
            raise InvalidHead("a head that names a key must have its signature")
        return head

    def text(self, key_id: str | None = None) -> str:
        """The note; with the id of the key that is to sign it."""
        root = base64.b64encode(bytes.fromhex(self.hash)).decode()
        note = f"{ORIGIN}{self.store_id}\n{self.seq}\n{root}\ntime {self.time}\n"
        return note if key_id is None else f"{note}key {key_id}\n"

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class SignedHead:
    """A head, the id of the key that signed it, and the note's signature: 4 bytes of hint, 64 of Ed25519.

    What it says counts only after `check`.
    """

    head: Head
    key_id: str
    signature: bytes

    @classmethod
    def parse(cls, text: str) -> SignedHead:
        """The head of a signed note. Lines that others (witnesses) signed are passed over.

        Raises
        ------
        InvalidHead
            The text is no such note.
        """
        if not isinstance(text, str) or len(text) > NOTE_CHARACTERS or "\n\n" not in text:
            raise InvalidHead("a signed head must be a note: text, an empty line, signatures")
        body, _, rest = text.rpartition("\n\n")
        head, key_id = _parsed(body + "\n")
        lines = [_SIGNATURE(line) for line in rest.splitlines(keepends=True)]
        own = [m["blob"] for m in lines if m and m["name"] == ORIGIN + head.store_id]
        if key_id is None or not all(lines) or len(own) != 1:
            raise InvalidHead("a signed head must name its key and have one signature of its own")
        try:
            signature = base64.b64decode(own[0], validate=True)
        except ValueError:
            signature = b""
        if len(signature) != 68 or base64.b64encode(signature).decode() != own[0]:
            raise InvalidHead("a head's signature must be 68 bytes in base64")
        return cls(head, key_id, signature)

    def __str__(self) -> str:
        blob = base64.b64encode(self.signature).decode()
        return f"{self.head.text(self.key_id)}\n\u2014 {ORIGIN}{self.head.store_id} {blob}\n"


def sign(head: Head, private_key: Ed25519PrivateKey) -> SignedHead:
    """The head under a signature; `str()` of it is what to keep elsewhere."""
    public = keys.public_key(private_key)
    key_id = keys.key_id(public)
    signature = private_key.sign(head.text(key_id).encode())
    return SignedHead(head, key_id, _hint(head, public) + signature)


def check(signed: SignedHead, public_key: bytes | keys.KeyHistory) -> Head:
    """The head, if the owner of `public_key` (32 bytes) signed it.

    With a `KeyHistory` (`rotation.follow`) it must be the key in force at that record: heads from before a change
    of keys count only under the older key, later ones only under the newer.

    Raises
    ------
    InvalidHead
        Another key signed it, or nobody did.
    """
    head = signed.head
    if isinstance(public_key, keys.KeyHistory):
        try:
            public_key = public_key.at(head.seq)
        except InvalidKey as error:
            raise InvalidHead(str(error)) from None
    wanted = keys.key_id(public_key)
    if signed.key_id != wanted:
        raise InvalidHead(f"the head must be signed by key {wanted}; it names {signed.key_id}")
    hint, signature = signed.signature[:4], signed.signature[4:]
    message = head.text(wanted).encode()
    if hint != _hint(head, public_key) or not keys.is_signed(public_key, signature, message):
        raise InvalidHead(f"the head's signature is not one of key {wanted} over this head")
    return head


def _hint(head: Head, public: bytes) -> bytes:
    name = f"{ORIGIN}{head.store_id}".encode()
    return hashlib.sha256(name + b"\n\x01" + public).digest()[:4]


def _parsed(text: str) -> tuple[Head, str | None]:
    found = _TEXT(text) if isinstance(text, str) and len(text) <= NOTE_CHARACTERS else None
    if found is None:
        raise InvalidHead(
            f"a head must be the lines '{ORIGIN}<store id>', seq, hash in base64, 'time <ns>'"
        )
    root = base64.b64decode(found["hash"])
    try:
        head = Head(found["store_id"], int(found["seq"]), root.hex(), int(found["time"]))
    except ValueError as error:
        raise InvalidHead(str(error)) from None
    if head.text(found["key_id"]) != text:
        raise InvalidHead("a head's hash must be 32 bytes in canonical base64")
    return head, found["key_id"]
