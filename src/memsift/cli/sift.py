"""`memsift sift`: forget in a vector database that somebody else keeps."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memsift.cli.options import policy_of, size_of
from memsift.cli.output import json_option, print_json, progress_rows
from memsift.errors import InvalidValue

if TYPE_CHECKING:
    from memsift.backends import Sift, Source, SourcePlan


@click.command()
@click.argument("url")
@click.option("--table", "place", help="The table, or the collection, that holds the memories.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="ROLE=NAME",
    help="What a column is called: id, embedding, time, created, count, pin, cost, tenant, version, schema, unit, "
    "access; repeatable.",
)
@click.option("--keep", help="What stays of each memory: 8000 entries, 0.5 or 50%.")
@click.option("--policy", help="Such as lru or coherence:gamma=0.5.")
@click.option("--by", type=click.Choice(["tenant"]), help="Each tenant is a memory of its own.")
@click.option(
    "--context",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The last queries: .npy, .npz or JSON lines, for policies that look at them.",
)
@click.option("--dry-run/--delete", default=True, help="Print the plan (default), or carry it out.")
@click.option("--yes", is_flag=True, help="Delete, and do not ask.")
@click.option("--force", is_flag=True, help="Allow more than half of a memory to leave.")
@click.option(
    "--archive",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Put victims into a .memsift or .rvf file before they leave.",
)
@click.option(
    "--archive-table", help="Put their rows into this table of the same schema, made if need be."
)
@click.option(
    "--create-access", is_flag=True, help="Make the table that --column access=NAME names."
)
@click.option(
    "--chain",
    type=click.Path(path_type=Path, dir_okay=False),
    default="sift.memsift",
    show_default=True,
    help="The audit chain; the plan lies beside it while it is carried out.",
)
@click.option("--batch", default=1000, show_default=True, help="Victims per transaction.")
@click.option(
    "--timeout", default=300.0, show_default=True, help="Seconds that a statement may take."
)
@json_option
def sift(
    url: str,
    place: str | None,
    columns: tuple[str, ...],
    keep: str | None,
    policy: str | None,
    by: str | None,
    context: Path | None,
    dry_run: bool,
    yes: bool,
    force: bool,
    archive: Path | None,
    archive_table: str | None,
    create_access: bool,
    chain: Path,
    batch: int,
    timeout: float,
    as_json: bool,
) -> None:
    """Forget in a vector database. Prints what would leave, and why; deletes only with --delete or --yes.

    Stopped half-way, the same command goes on where it was. Keep the password out of the URL: PGPASSWORD or ~/.pgpass,
    QDRANT_API_KEY, CHROMA_API_KEY. Of Qdrant and Chroma --column takes time, created, count, pin, cost, tenant, unit.

    \b
    Example:
      memsift sift postgresql://app@db/agents --table memories --keep 50% --policy lru --column time=seen_at
      memsift sift postgresql://app@db/agents --table memories --keep 50% --policy lru --column time=seen_at \\
          --archive victims.memsift --delete
      memsift sift qdrant://127.0.0.1:6333/memories --keep 8000 --policy lru
      memsift sift chroma+path://./chroma#memories --keep 50% --policy lfu
    """
    from memsift.backends.opening import open_source
    from memsift.backends.sifting import Sift, unfinished

    if archive is not None and archive_table is not None:
        raise InvalidValue("--archive and --archive-table must not be given both")
    opened: Any = open_source(
        url, place, columns=_pairs(columns), timeout_seconds=timeout, archive_into=archive_table
    )
    with closing(opened) as source:
        if create_access:
            if not hasattr(source, "create_access_table"):
                raise InvalidValue(
                    "--create-access is for PostgreSQL; here documents keep counters"
                )
            source.create_access_table()
        if unfinished(chain):
            found = Sift.resume(source, chain)
            _show(found.plan, as_json, "a sift was begun and not finished; this is its plan")
            if dry_run and not yes:
                return
            _agree(yes, f"Go on with it, in {source.name}?")
            _carry_out(found, as_json)
            return
        plan = _plan(source, keep, policy, by, context)
        _show(plan, as_json and (dry_run and not yes), None, quiet=as_json)
        if dry_run and not yes:
            if not as_json:
                click.echo("\nNothing was changed. --delete carries the plan out.")
            return
        if plan.forced and not force:
            raise InvalidValue(
                "a sift may take at most half of a memory without --force; this one would take more"
            )
        if len(plan):
            _agree(yes, f"Delete {len(plan):,} entries of {source.name}?")
        if archive_table is not None:
            source.create_archive_table()
        window = None if context is None else _queries(context)
        _carry_out(
            Sift.begin(source, plan, chain, archive=archive, batch=batch, context=window), as_json
        )


def _plan(
    source: Source, keep: str | None, policy: str | None, by: str | None, context: Path | None
) -> SourcePlan:
    if keep is None or policy is None:
        raise InvalidValue("--keep and --policy must be given")
    window = None if context is None else _queries(context)
    return source.plan(
        policy_of(policy), size_of(keep, "--keep"), by_tenant=by == "tenant", context=window
    )


def _carry_out(made: Sift, as_json: bool) -> None:
    try:
        with progress_rows("deleting", len(made.plan)) as advance:
            report = made.run(advance)
    except KeyboardInterrupt:
        click.echo("Stopped. The same command goes on where it was.", err=True)
        raise click.exceptions.Exit(130) from None
    if as_json:
        print_json(
            {
                "dropped": report.dropped,
                "spared": report.spared,
                "audit_head": report.audit_head,
                "chain": str(report.chain),
                "archive": None if report.archive is None else str(report.archive),
            }
        )
        return
    click.echo(str(report))
    if report.audit_head is not None:
        click.echo(f"audit head {report.audit_head}")
        click.echo(f"memsift audit verify {report.chain} -n sift")


def _show(plan: SourcePlan, as_json: bool, note: str | None, quiet: bool = False) -> None:
    if as_json:
        print_json(plan.to_dict() | ({"note": note} if note else {}))
    elif not quiet:
        click.echo(f"Note: {note}\n{plan}" if note else str(plan))


def _agree(yes: bool, question: str) -> None:
    if not yes:
        click.confirm(question, abort=True, err=True)


def _pairs(columns: tuple[str, ...]) -> dict[str, str]:
    out = {}
    for pair in columns:
        role, equals, name = pair.partition("=")
        if not equals or not role or role in out:
            raise InvalidValue(f"--column must be ROLE=NAME, each role once; got {pair[:40]!r}")
        out[role] = name
    return out


def _queries(path: Path) -> Any:
    """The vectors of a file, all of them: (w, dim)."""
    import numpy as np

    from memsift.formats.batches import read_batches

    batches, _ = read_batches(path)
    parts = [np.asarray(batch.vectors) for batch in batches]
    if not parts:
        raise InvalidValue(f"--context must hold at least one query; {path.name} holds none")
    return np.concatenate(parts)
