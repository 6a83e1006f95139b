"""What a log shows: proved, broken, or not proved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "broken", "unproven"]
EXIT_CODES = {"ok": 0, "broken": 2, "unproven": 3}


@dataclass(frozen=True)
class Verdict:
    """What a log's records show.

    Parameters
    ----------
    status : "ok", "broken" or "unproven"
        Complete up to the given head; changed at `seq`; consistent, but not shown to be complete.
    seq : int
        ok: the head's seq. broken: the first record that is wrong or missing. unproven: the last record.
    first, last : int
        The first record that the log holds, and the last one that follows from it; 0 and 0 of an empty log.
    hash : str
        The hash of record `last`.
    why : str
        In words; after "ok" what lies beyond the proof, if anything does.
    """

    status: Status
    seq: int
    first: int
    last: int
    hash: str
    why: str

    @property
    def exit_code(self) -> int:
        """0 proved, 2 broken, 3 unproven. 1 is left to programs, for "could not run"."""
        return EXIT_CODES[self.status]

    def __str__(self) -> str:
        if self.status == "broken":
            return f"broken{f' at record {self.seq:,}' if self.seq else ''}: {self.why}"
        span = f"records {self.first:,} to {self.last:,}" if self.last else "an empty log"
        if self.status == "unproven":
            return f"unproven: {span} consistent, {self.why}"
        return f"ok: complete up to record {self.seq:,}" + (f"; {self.why}" if self.why else "")
