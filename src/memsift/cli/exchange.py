"""Commands that carry a store elsewhere: export and import of .rvf files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memsift.cli.options import (
    budget_of,
    budget_options,
    namespace_option,
    open_store,
    policy_of,
    store_file,
)
from memsift.cli.output import json_option, print_json


@click.command()
@store_file
@click.argument("out", type=click.Path(path_type=Path))
@namespace_option
@json_option
def export(file: Path, out: Path, namespace: str, as_json: bool) -> None:
    """Write a store as .rvf: vectors that other tools read, and everything else that memsift knows.

    An export is a file of its own: `erase` does not reach it.

    \b
    Example:
      memsift export agent.memsift agent.rvf
    """
    with open_store(file, namespace) as store:
        store.save_rvf(out)
        count = len(store)
    print_json({"entries": count, "path": str(out)}) if as_json else click.echo(
        f"wrote {count:,} entries to {out}"
    )


@click.command("import")
@click.argument("source", type=click.Path(path_type=Path))
@store_file
@budget_options
@click.option("--policy", help="The one that the file names by default.")
@namespace_option
@json_option
def import_(
    source: Path, file: Path, policy: str | None, namespace: str, as_json: bool, **budget: Any
) -> None:
    """Read a .rvf, of memsift or of the RuVector tools, into a new store or a new namespace.

    \b
    Example:
      memsift import agent.rvf copy.memsift --budget 10000
    """
    from memsift.durable import DurableStore

    limits = budget_of(budget["budget_entries"], budget["budget_bytes"], budget["budget_cost"])
    with DurableStore.import_rvf(source, file, namespace, limits, policy_of(policy)) as store:
        count = len(store)
    if as_json:
        print_json({"entries": count, "path": str(file), "namespace": namespace})
    else:
        click.echo(f"{file}, namespace {namespace}: {count:,} entries")
