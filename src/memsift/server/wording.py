"""What leaves the server as text: stored words without tricks, errors without secrets.

Stored text is somebody's input. It goes out as JSON only, without control characters, terminal sequences or marks that
reorder or hide what a reader sees; what is left of an attack is said to be untrusted.
"""

from __future__ import annotations

import re
from typing import Any

from memsift.errors import (
    BudgetExceeded,
    ClosedStore,
    CorruptStore,
    DiskTrouble,
    InvalidType,
    InvalidValue,
    MemsiftError,
    MissingExtra,
    PolicyError,
    StoreBusy,
    UnknownEntry,
)

ECHOED = 64
LONGEST_ERROR = 400

# Terminal sequences as wholes (CSI; OSC, DCS, SOS, PM and APC with what they carry), before their first character goes.
_TERMINAL = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
# C0 but tab and newline, DEL, C1; marks of direction; invisible fillers; tags and lone surrogates.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_BREAKS = re.compile("\r\n?|[\u2028\u2029]")


def clean(text: str) -> str:
    """`text` without what could act on a terminal or hide from a reader. Line breaks and tabs stay."""
    return _HIDDEN.sub("", _TERMINAL.sub("", _BREAKS.sub("\n", text)))


def cleaned(value: Any) -> Any:
    """JSON data with all its texts clean, keys too."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): cleaned(item) for key, item in value.items()}
    return [cleaned(item) for item in value] if isinstance(value, list) else value


def echo(text: str) -> str:
    """At most 64 characters of what a client sent: printable ASCII, one line."""
    plain = "".join(c if " " <= c <= "~" else "?" for c in text[: ECHOED + 1])
    return plain if len(plain) <= ECHOED else plain[: ECHOED - 3] + "..."


# Said by the core about the call: they name a parameter, what is allowed, and at most 60 characters of what came.
_SPOKEN = (InvalidValue, InvalidType, BudgetExceeded, PolicyError, UnknownEntry, MissingExtra)


def said(error: MemsiftError) -> str:
    """An error in words that may leave: no path, nothing stored, one line."""
    if isinstance(error, CorruptStore):
        return "the memory's file is damaged; run `memsift verify` on it"
    if isinstance(error, _SPOKEN):
        words = clean(str(error)).replace("\n", " ")
        return words if len(words) <= LONGEST_ERROR else words[: LONGEST_ERROR - 3] + "..."
    if isinstance(error, StoreBusy):
        return "the memory is busy: another process is writing; nothing was changed, try again"
    if isinstance(error, DiskTrouble):
        return "the disk is full or failed; nothing was changed"
    if isinstance(error, ClosedStore):
        return "the server is shutting down"
    return "the memory could not do this; nothing was changed"


def trail(error: BaseException) -> str:
    """Where an unexpected error came from, for stderr: its type and the place in the code, never its words."""
    place, trace = "?", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        place = f"{code.co_filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {place}"
