"""The audit log: what was forgotten, when and by which rule, in records that cannot be changed unseen.

Pure functions over bytes. A store keeps the bodies; `chain.link` makes the next record, `chain.verify` judges a log,
`commitment` hides and proves evicted ids, `heads` and `keys` sign how far the log went, `rotation` follows a change of
keys, `export` writes JSON lines, `replay` runs a recorded decision again. See docs/audit.md.
"""

from memsift.audit import chain, commitment, export, heads, keys, replay, rotation
from memsift.audit.chain import genesis, link, prune_note, verify
from memsift.audit.commitment import Proof, evicted_commitment
from memsift.audit.fields import InvalidHead, InvalidKey, InvalidRecord
from memsift.audit.heads import Head, Position, SignedHead
from memsift.audit.keys import KeyHistory, generate_key, load_key
from memsift.audit.record import Record, State
from memsift.audit.replay import confirms
from memsift.audit.verdict import Verdict

__all__ = [
    "Head",
    "InvalidHead",
    "InvalidKey",
    "InvalidRecord",
    "KeyHistory",
    "Position",
    "Proof",
    "Record",
    "SignedHead",
    "State",
    "Verdict",
    "chain",
    "commitment",
    "confirms",
    "evicted_commitment",
    "export",
    "generate_key",
    "genesis",
    "heads",
    "keys",
    "link",
    "load_key",
    "prune_note",
    "replay",
    "rotation",
    "verify",
]
