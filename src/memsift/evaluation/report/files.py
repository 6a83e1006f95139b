"""Writing a report: the whole file or no file."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from memsift.errors import InvalidValue


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Put `data` at `path`, replacing what is there only once all of it is written."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InvalidValue(
            f"path must lie in a folder that exists; got {os.fspath(path)!r}, "
            f"and {os.fspath(target.parent)!r} is not a folder"
        )
    if target.is_dir():
        raise InvalidValue(f"path must name a file; got the folder {os.fspath(path)!r}")
    # Beside the target, because a replacement is atomic only within one file system; opened by
    # hand, because `tempfile` would leave a report that nobody but its writer may read.
    draft = target.with_name(f".{target.name[:80]}.{secrets.token_hex(6)}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(data)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
