"""What an adapter says when its framework is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memsift.errors import MissingExtra


@contextmanager
def needed(package: str, extra: str) -> Iterator[None]:
    """Imports within need `package`, which the extra brings.

    Raises
    ------
    MissingExtra
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != package:
            raise
        raise MissingExtra(
            f"memsift.adapters.{extra} needs {package}: pip install 'memsift[{extra}]'"
        ) from error
