"""Any function from texts to vectors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from memsift import checks
from memsift.agent.embedders.base import FloatRows, checked, listed
from memsift.errors import EmbedderFailed, InvalidType, InvalidValue, MemsiftError

LONGEST_FINGERPRINT = 200


class Function:
    """A function `texts -> (n, dim) array`, called by one thread at a time.

    Parameters
    ----------
    function : callable
        Gets a list of texts. What it gives back is checked and normalised.
    dim : int, optional
        Found by one call if left out, when somebody asks.
    fingerprint : str, optional
        Which model this is: printable ASCII, at most 200 characters. By default `function:` and the qualified name,
        which a lambda or a partial has not: then it must be given.
    near_duplicate : float, optional
        The cosine from which two texts say the same; exact repeats only if left out.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        dim: int | None = None,
        fingerprint: str | None = None,
        near_duplicate: float | None = None,
    ) -> None:
        if not callable(function):
            raise InvalidType(f"function must be callable; got {checks.shown(function)}")
        self._function, self._calling = function, threading.Lock()
        self._dim = None if dim is None else checks.integer(dim, "dim", 1, 65_536)
        self.fingerprint = printable(_name_of(function) if fingerprint is None else fingerprint)
        if near_duplicate is not None:
            self.near_duplicate = checks.real(near_duplicate, "near_duplicate")

    @property
    def dim(self) -> int:
        """Length of every row."""
        if self._dim is None:
            self.embed(["dim"])
        assert self._dim is not None
        return self._dim

    def embed(self, texts: Sequence[str]) -> FloatRows:
        """Unit rows: (n, dim) float32.

        Raises
        ------
        EmbedderFailed
            The function failed, or gave something else than one usable vector per text.
        """
        found = listed(texts)
        with self._calling:
            try:
                rows = self._function(found) if found else []
            except MemsiftError:
                raise
            except Exception as error:
                kind = type(error).__name__
                raise EmbedderFailed(f"{self.fingerprint} failed ({kind})") from error
            if not found and self._dim is None:
                raise InvalidValue("texts must hold at least 1 text while dim is unknown; got none")
            # Once the length is known, no other is taken.
            checked_rows = checked(rows, len(found), self._dim, self.fingerprint)
            self._dim = checked_rows.shape[1]
            return checked_rows

    def __repr__(self) -> str:
        return f"Function({self.fingerprint!r})"


def printable(fingerprint: object) -> str:
    """A fingerprint that can be kept in a file and shown anywhere."""
    if not isinstance(fingerprint, str):
        raise InvalidType(f"fingerprint must be text; got {checks.shown(fingerprint)}")
    fits = fingerprint.isascii() and fingerprint.isprintable()
    if not fits or not 1 <= len(fingerprint) <= LONGEST_FINGERPRINT:
        raise InvalidValue(
            f"fingerprint must be 1 to {LONGEST_FINGERPRINT} printable ASCII characters; "
            f"got {checks.shown(fingerprint)}"
        )
    return fingerprint


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", "")
    if (
        not name or "<" in name
    ):  # a lambda, or made within a function: another may bear the same name
        raise InvalidValue(
            "fingerprint must be given for a function without a name of its own; got none"
        )
    return f"function:{function.__module__}.{name}"
