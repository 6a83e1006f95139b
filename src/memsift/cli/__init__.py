"""The command line: each command is one call of the library, and a way to print what it gave."""

from __future__ import annotations

import sys


def main() -> None:
    """Run `memsift`. Exit codes: 0 done, 1 it failed, 2 it was called wrongly."""
    try:
        from memsift.cli.app import cli
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        print(
            "memsift's command line needs two more packages: pip install 'memsift[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(1) from None
    cli.main(prog_name="memsift")
