"""Commands that prove: audit verify, export and head; verify."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from memsift.cli.options import namespace_option, open_store, store_file
from memsift.cli.output import Commands, json_option, print_json
from memsift.errors import InvalidValue

if TYPE_CHECKING:
    from memsift.audit import Head


@click.group(cls=Commands)
def audit() -> None:
    """The chain of decisions: what was forgotten, when and by which rule."""


@audit.command("verify")
@store_file
@click.option(
    "--head", "head_file", type=click.Path(path_type=Path), help="A head that was kept elsewhere."
)
@click.option(
    "--public-key",
    "key_file",
    type=click.Path(path_type=Path),
    help="Whose signature the head must carry (32 bytes, hex).",
)
@namespace_option
@json_option
def verify_chain(
    file: Path, head_file: Path | None, key_file: Path | None, namespace: str, as_json: bool
) -> None:
    """Whether the chain is whole. Exit codes: 0 proved by a head, 2 broken, 3 consistent but completeness unproven.

    \b
    Example:
      memsift audit head agent.memsift > head.txt        # and keep it elsewhere
      memsift audit verify agent.memsift --head head.txt
    """
    head = None if head_file is None else _head(head_file, key_file)
    with open_store(file, namespace) as store:
        verdict = store.audit.verify(head)
    if as_json:
        print_json({"status": verdict.status, "words": str(verdict)})
    else:
        click.echo(str(verdict))
    raise click.exceptions.Exit(verdict.exit_code)


@audit.command("head")
@store_file
@click.option(
    "--key",
    "key_file",
    type=click.Path(path_type=Path),
    help="Sign it with this Ed25519 key (PEM).",
)
@namespace_option
@json_option
def print_head(file: Path, key_file: Path | None, namespace: str, as_json: bool) -> None:
    """Where the chain ends now: a short note to keep outside of the file.

    \b
    Example:
      memsift audit head agent.memsift --key audit.pem > head.txt
    """
    from memsift.audit import heads, load_key

    with open_store(file, namespace) as store:
        head = store.audit.head()
    text = str(head if key_file is None else heads.sign(head, load_key(key_file)))
    if as_json:
        print_json({"store_id": head.store_id, "seq": head.seq, "hash": head.hash, "note": text})
    else:
        click.echo(text, nl=False)


@audit.command("export")
@store_file
@click.argument("out", type=click.Path(path_type=Path))
@namespace_option
@json_option
def export_chain(file: Path, out: Path, namespace: str, as_json: bool) -> None:
    """Write the records as JSON lines, the very bytes that were hashed, into a new file.

    \b
    Example:
      memsift audit export agent.memsift chain.jsonl
    """
    with open_store(file, namespace) as store:
        count = store.audit.export(out)
    print_json({"records": count, "path": str(out)}) if as_json else click.echo(
        f"wrote {count:,} records to {out}"
    )


@audit.command("prune")
@store_file
@click.option("--keep", required=True, type=int, help="How many of the last records stay.")
@namespace_option
@json_option
def prune_chain(file: Path, keep: int, namespace: str, as_json: bool) -> None:
    """Drop old records, and record that. Export them first if anybody may ask.

    \b
    Example:
      memsift audit prune agent.memsift --keep 1000
    """
    with open_store(file, namespace) as store:
        head, left = store.prune_audit(keep), len(store.audit)
    print_json({"records": left, "audit_head": head}) if as_json else click.echo(
        f"{left:,} records stay" if head else f"nothing to drop: {left:,} records"
    )


@click.command()
@store_file
@namespace_option
@json_option
def verify(file: Path, namespace: str, as_json: bool) -> None:
    """Check a store from end to end: sums, table against file, index, bounds, chain. Exit code 1 if anything is wrong.

    \b
    Example:
      memsift verify agent.memsift
    """
    with open_store(file, namespace) as store:
        found = store.verify()
    print_json({"ok": found.ok, "checks": found.checks}) if as_json else click.echo(str(found))
    raise click.exceptions.Exit(0 if found.ok else 1)


def _head(path: Path, key_file: Path | None) -> Head:
    from memsift.audit import Head, SignedHead, heads

    try:
        text = path.read_text(encoding="utf-8")
        if key_file is None:
            return Head.parse(text)
        return heads.check(SignedHead.parse(text), bytes.fromhex(key_file.read_text().strip()))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(f"--head must be a readable note; {error}") from None
