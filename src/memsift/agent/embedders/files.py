"""Models that lie in installed packages: found without running the package, read with errors of ours."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from memsift.errors import EmbedderFailed, MemsiftError, MissingExtra


def missing(packages: tuple[str, ...]) -> list[str]:
    """Those of some packages that are not installed. Imports none."""
    return [name for name in packages if not _installed(name)]


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:  # somebody put something else into its place in `sys.modules`
        return False


def demand(packages: tuple[str, ...], extra: str) -> None:
    """Raise `MissingExtra`, naming the extra, unless all of these packages are there."""
    gone = missing(packages)
    if gone:
        raise MissingExtra(
            f"{', '.join(gone)} must be installed for this embedder: memsift[{extra}]"
        )


def folder_of(package: str) -> Path:
    """Where an installed package lies. It is not imported."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise EmbedderFailed(f"package {package} must have a folder of its own; it has none")
    return Path(spec.origin).parent


@contextmanager
def reading(whose: str) -> Iterator[None]:
    """Whatever goes wrong with a model's files within is an `EmbedderFailed`."""
    try:
        yield
    except MemsiftError:
        raise
    except Exception as error:  # the packages raise kinds of their own, and bare ones
        kind = type(error).__name__
        raise EmbedderFailed(f"the files of {whose} cannot be read ({kind})") from error


def sha256(path: Path) -> str:
    """Of a whole file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
