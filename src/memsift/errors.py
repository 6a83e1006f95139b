"""Every error that memsift raises on purpose.

Each is a `MemsiftError` and also the builtin that fits, so that `except ValueError` in a caller's code
keeps working. Messages name the parameter, what is allowed and what came.
"""

from __future__ import annotations


class MemsiftError(Exception):
    """The root of all errors of this package."""


class InvalidValue(MemsiftError, ValueError):
    """A parameter of the right type has a value that is not allowed."""


class InvalidType(MemsiftError, TypeError):
    """A parameter has a type that is not allowed."""


class DimensionMismatch(InvalidValue):
    """A vector has another length than the store's."""


class NotFinite(InvalidValue):
    """A vector holds NaN or infinity, or does so once it is cast to float32."""


class ZeroVector(InvalidValue):
    """A vector has no direction, so a cosine with it means nothing."""


class InvalidFilter(InvalidValue):
    """A `where` filter uses an operator or a shape that does not exist."""


class InvalidMetadata(InvalidValue):
    """Metadata is not strict JSON, or is larger or deeper than allowed."""


class UnknownEntry(MemsiftError, KeyError):
    """An id that the store does not hold (never given, deleted or evicted)."""

    def __str__(self) -> str:  # KeyError would print the message's repr
        return str(self.args[0]) if self.args else ""


class BudgetExceeded(MemsiftError, ValueError):
    """Pinned entries and the newcomer do not fit into the budget together. Nothing was changed."""


class PolicyError(MemsiftError, ValueError):
    """A policy broke its contract: NaN scores, wrong rows, or more rows than asked for."""


class StaleView(MemsiftError, RuntimeError):
    """A view's vectors were asked for after the store had moved them. Take a new view."""


class MissingExtra(MemsiftError, ImportError):
    """An optional package is needed for this and is not installed."""


class CorruptStore(MemsiftError, ValueError):
    """Bytes on disk are not what they should be.

    Attributes
    ----------
    section : str
        The part of the file that is damaged.
    offset : int or None
        Where, in bytes from the start of the file, if that is known.
    """

    def __init__(self, section: str, message: str, offset: int | None = None) -> None:
        where = section if offset is None else f"{section} at byte {offset}"
        super().__init__(f"{where}: {message}")
        self.section, self.offset, self._message = section, offset, message

    def __reduce__(self) -> tuple[type[CorruptStore], tuple[str, str, int | None]]:
        # So that it can be copied and cross a process pool, as other exceptions can.
        return type(self), (self.section, self._message, self.offset)


class StoreBusy(MemsiftError, TimeoutError):
    """Another process held the write lock for longer than `busy_timeout`. Nothing was changed."""


class DiskTrouble(MemsiftError, OSError):
    """The disk is full, or failed. Nothing was changed; reads go on.

    Only if the process dies before its next write, a call whose last sync failed may turn out to be made: whole.
    """


class ForkedStore(MemsiftError, RuntimeError):
    """This store was opened in another process. Open it again in this one."""


class ClosedStore(MemsiftError, ValueError):
    """The store was closed."""


class SourceTrouble(MemsiftError, OSError):
    """Another system that holds memories cannot be reached, refused, or failed. What was not committed is undone."""
